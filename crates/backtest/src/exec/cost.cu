// What a trade costs, the share of equity it commits, what it leaves, and the price that leaves nothing. Twin of cost.rs.

// Profit of one unit after costs, in price units, if closing it costs so much; where both sides cost the same their prices are added first.
__device__ inline double pnl_of(double sign, double entry, double exit, double out_bps) {
  double cost = out_bps == COST_MARKET_BPS ? (entry + exit) * COST_MARKET_BPS : entry * COST_MARKET_BPS + exit * out_bps;
  return sign * (exit - entry) - cost / 10000.0;
}

// Equity after a result: it compounds, and does not fall below nothing; or it adds in price units.
__device__ inline double equity_after(double equity, double pnl, double ret, double share) {
  if (ADDITIVE) return equity + pnl;
  double value = equity * (1.0 + share * ret);
  return value > 0.0 ? value : 0.0;
}

// The return between two marks of equity: a share of the first, or the difference in price units.
__device__ inline double change_of(double before, double now) {
  if (ADDITIVE) return now - before;
  return before > 0.0 ? now / before - 1.0 : 0.0;
}

// The part of equity that a trade commits.
__device__ inline double share_of(double entry, double risk) {
  if (SIZING_RISK) {
    double share = SIZING_SHARE * entry / risk;
    return share < 1.0 ? share : 1.0;
  }
  return SIZING_SHARE;
}

template <bool LONG> __device__ inline double ruin_at(double entry, double share) {
  const double cost_in = COST_MARKET_BPS / 10000.0, cost_out = COST_STOP_BPS / 10000.0;
  return LONG ? entry * (1.0 + cost_in - 1.0 / share) / (1.0 - cost_out) : entry * (1.0 - cost_in + 1.0 / share) / (1.0 + cost_out);
}

// The price that leaves nothing of equity: NA if there is none, or if no bar of the symbol reaches it. `extremes` are its lowest and highest price.
//
// With less than all of equity the price lies farther off; a multiplication tells that even the nearest is not reached. Its margin is far above
// what rounding could turn round.
template <bool LONG> __device__ inline double ruin_of(const double* extremes, double entry, double share) {
  if (ADDITIVE) return NA;
  const double cost_in = COST_MARKET_BPS / 10000.0, cost_out = COST_STOP_BPS / 10000.0;
  if (cost_in < 0.9 && cost_out < 0.9) {
    bool unreached = LONG ? entry * (cost_in * (1.0 + 1e-9) + 1e-12) < extremes[0] * (1.0 - cost_out)
                          : entry * ((2.0 - cost_in) * (1.0 - 1e-9)) > extremes[1] * (1.0 + cost_out);
    if (unreached) return NA;
  }
  double price = ruin_at<LONG>(entry, share);
  return price > 0.0 && is_finite(price) ? price : NA;
}
