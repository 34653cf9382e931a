//! Where a plan is carried out: the ports, and a simulator, a lab and a cluster behind them.
