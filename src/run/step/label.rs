//! `label`: labels of the Deployment; set back at the end.

use std::collections::BTreeMap;

use super::{End, api};
use crate::language::plan::Label;
use crate::run::context::Context;
use crate::run::journal::Undo;

pub(super) async fn run(ctx: &Context, verb: &Label) -> End {
    let deployment = match ctx.world.cluster.deployment().await {
        Ok(deployment) => deployment,
        Err(error) => return End::failed(&error),
    };
    let mut labels = BTreeMap::new();
    for (key, value) in &verb.labels {
        match ctx.fill(value) {
            Ok(value) => labels.insert(key.clone(), Some(value)),
            Err(error) => return error.into(),
        };
    }
    let before = labels
        .keys()
        .map(|k| (k.clone(), deployment.labels.get(k).cloned()))
        .collect();
    let what = format!(
        "label {} {}",
        deployment.name,
        labels.keys().cloned().collect::<Vec<_>>().join(", ")
    );
    let call = ctx.world.cluster.label(&labels);
    let answer = api::change(ctx, &what, Undo::Labels { labels: before }, call).await;
    End::answered(answer, what)
}
