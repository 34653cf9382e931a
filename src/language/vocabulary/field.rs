use super::words;

words! {
    /// What a template or an expression can begin with, before the first dot.
    Root {
        Vars "vars" "variables of the scenario: `vars.work`"
        Target "target" "the target pod: `target.pod`, `target.uid`, `target.node`, `target.ip`"
        Env "env" "gtrun's own environment: `env.TOKEN`; redacted everywhere"
        Run "run" "this run: `run.id`, `run.dir`"
        Steps "steps" "results of steps that ran before: `steps.evict.status`"
    }
}

words! {
    /// What is known of the target pod.
    TargetField {
        Pod "pod" "name of the pod"
        Uid "uid" "uid of the pod"
        Node "node" "name of its node"
        Ip "ip" "IP address of the pod"
    }
}

words! {
    /// What is known of the run.
    RunField {
        Id "id" "the run's id, also in the names of what it leaves on other hosts"
        Dir "dir" "the run's folder"
    }
}

words! {
    /// What a step leaves behind, and in a poll's `until` the last reply.
    StepField {
        Status "status" "HTTP status of the answer, or of the API's"
        Outcome "outcome" "how it ended"
        Duration "duration" "how long it took"
        Bytes "bytes" "bytes of the body"
        LocalPort "local_port" "port of the client's side of the connection"
        Exit "exit" "exit code of the command"
        Stdout "stdout" "standard output of the command"
        Body "body" "body of the last reply, in a poll's `until` only"
    }
}

words! {
    /// Details that an event may carry. One that no source gave is unknown.
    EventField {
        Sessions "sessions" "`lb_down.sessions`: sessions that the load balancer's log line counts; printed in a race with the kills"
        Reason "reason" "`lb_down.reason`: why the check failed"
        Code "code" "`container_exit(C).code`: exit code of the container"
        Sender "sender" "`rst.sender`: who sent the reset"
    }
}
