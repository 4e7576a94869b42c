// Adaptive Trend Classification; see atc.rs.
//
// Scratch of an item: running sums (4 columns), the way walked (2), growth (1). Items that read the same series share the
// sums of the first. A block has three items of a symbol, a warp of it one family, a lane one of nine lengths of an item. It
// goes through the bars in tiles: lanes run their moving averages, signals and equities; then every lane has the vote of a bar;
// then three lanes run the equities of layer 2; then the families meet.

namespace atc {

#define ATC_ITEMS 3
#define ATC_TILE 16
#define ATC_LANES (ATC_ITEMS * N_LENGTHS)
#define ATC_MAX_LENGTH 100000

struct Column {
  const double2* sum;
  const double2* sums;
  const double2* way;
};

__device__ __forceinline__ u32 n_entries_of(const ColumnArgs& args) { return args.n_bars + args.n_symbols; }

// The item whose sums item j reads.
__device__ __forceinline__ u32 owner_of(const ColumnArgs& args, u32 j) { return args.inputs[0].item_of ? j : 0; }

__device__ __forceinline__ Column column_of(const ColumnArgs& args, u32 j, u32 symbol) {
  u64 n = n_entries_of(args);
  const double2* base = (const double2*)scratch_of(args, owner_of(args, j)) + args.start[symbol] + symbol;
  return Column{base, base + n, base + 2 * n};
}

__device__ __forceinline__ double* growth_of(const ColumnArgs& args, u32 j) {
  return scratch_of(args, j) + 6 * (u64)n_entries_of(args);
}

__device__ __forceinline__ double rate_of(const ColumnArgs& args, u32 j) {
  return args.arguments[1][args.trial[j]] / 1000.0;
}

// A lane per item.
KERNEL(atc_sums, ColumnArgs) {
  u32 n_groups = (args.count + 31) / 32;
  u32 symbol = blockIdx.x / n_groups;
  u32 j = blockIdx.x % n_groups * 32 + threadIdx.x;
  if (j >= args.count || owner_of(args, j) != j) return;
  u32 n = args.start[symbol + 1] - args.start[symbol];
  const double* x = input_of(args, 0, j) + args.start[symbol];
  Column column = column_of(args, j, symbol);
  double2* sum = (double2*)column.sum;
  double2* sums = (double2*)column.sums;
  double2* way = (double2*)column.way;
  DoubleDouble total = {0.0, 0.0}, totals = {0.0, 0.0}, walked = {0.0, 0.0};
  double before = NA;
  for (u32 bar = 0; bar <= n; bar++) {
    sum[bar] = make_double2(total.hi, total.lo);
    sums[bar] = make_double2(totals.hi, totals.lo);
    way[bar] = make_double2(walked.hi, walked.lo);
    if (bar == n) break;
    double now = x[bar];
    totals = add(totals, total);
    total = add(total, is_finite(now) ? now : 0.0);
    double size = fabs(now - before);
    if (bar > 0 && is_finite(size)) walked = add(walked, size);
    before = now;
  }
}

// A thread per bar.
KERNEL(atc_growth, ColumnArgs) {
  u32 j = blockIdx.x % args.count;
  double rate = rate_of(args, j);
  fill_bars(args, growth_of(args, j), [&](u32, u32, u32, u32 bar) { return growth_factor(rate, 0, bar); });
}

__device__ __forceinline__ u32 length_of(u32 middle, u32 k) {
  const u32 steps[4] = {1, 2, 4, 6};
  if (k == 0) return middle;
  if (k < 5) return middle + steps[k - 1];
  return middle > steps[k - 5] ? middle - steps[k - 5] : 1;
}

// One moving average of a family, and what it needs of the series.
struct Lane {
  const double* x;
  Column column;
  u32 length, run, numbers, bounded;
  double before, y;

  __device__ __forceinline__ Lane(const double* x, const Column& column, u32 length)
      : x(x), column(column), length(length), run(0), numbers(0), bounded(0), before(NA), y(NA) {}

  __device__ __forceinline__ Entry entry(u32 bar) const { return Entry{pair(column.sum[bar]), pair(column.sums[bar])}; }
};

struct SimpleLane : Lane {
  using Lane::Lane;
  __device__ __forceinline__ double push(u32 bar, double now) {
    run = is_finite(now) ? run + 1 : 0;
    if (run < length) return NA;
    double divisor = (double)length;
    return mean_of<false>(pair(column.sum[bar + 1]), pair(column.sum[bar + 1 - length]), divisor, 1.0 / divisor);
  }
};

struct WeightedLane : Lane {
  using Lane::Lane;
  __device__ __forceinline__ double push(u32 bar, double now) {
    run = is_finite(now) ? run + 1 : 0;
    if (run < length) return NA;
    double w = (double)length, divisor = w * (w + 1.0) / 2.0;
    return linear_of<false>(entry(bar + 1), pair(column.sums[bar + 1 - length]), w, divisor, 1.0 / divisor);
  }
};

struct LineLane : Lane {
  using Lane::Lane;
  __device__ __forceinline__ double push(u32 bar, double now) {
    run = is_finite(now) ? run + 1 : 0;
    if (run < length || length < 2) return NA;
    double w = (double)length, divisor = w * (w + 1.0) / 2.0;
    return line_of<false>(entry(bar + 1), entry(bar + 1 - length), 2.0 * w - 1.0, w + 1.0, -3.0, divisor, 1.0 / divisor);
  }
};

struct ExponentialLane : Lane {
  Exponential<1> average;
  // Of the one length.
  Smoothing weights;

  __device__ __forceinline__ ExponentialLane(const double* x, const Column& column, u32 length)
      : Lane(x, column, length), average(&this->length, 0) {
    weights.a[0] = 2.0 / ((double)length + 1.0);
    weights.b[0] = 1.0 - weights.a[0];
  }

  __device__ __forceinline__ double push(u32 bar, double now) {
    average.push<false>(weights, &length, bar, now);
    return average.y[0];
  }
};

// The average of an average: the first of those is its seed.
__device__ __forceinline__ double blend_second(double second, double first, double a, double b) {
  double next = blend(second, first, a, b);
  return is_nan(second) ? first : next;
}

struct DoubleExponentialLane : ExponentialLane {
  double second;

  __device__ __forceinline__ DoubleExponentialLane(const double* x, const Column& column, u32 length)
      : ExponentialLane(x, column, length), second(NA) {}

  __device__ __forceinline__ double push(u32 bar, double now) {
    double first = ExponentialLane::push(bar, now);
    second = blend_second(second, first, weights.a[0], weights.b[0]);
    return 2.0 * first - second;
  }
};

// The next adaptive average, from the value `length` bars ago and the way since then.
__device__ __forceinline__ double pine_next(double y, double x, double old, double way, double range, double slowest) {
  double net = fabs(x - old);
  double ratio = way == 0.0 ? 0.0 : net / way;
  double root = ratio * range + slowest;
  double from = is_nan(y) ? x : y;
  return from + (root * root) * (x - from);
}

struct AdaptiveLane : Lane {
  using Lane::Lane;
  __device__ __forceinline__ double push(u32 bar, double now) {
    if (bar == 0) {
      y = now;
    } else {
      double size = fabs(now - before);
      numbers = is_nan(size) ? 0 : numbers + 1;
      bounded = size == INFINITE ? 0 : bounded + 1;
    }
    before = now;
    if (bar < length) return y;
    double way = way_between<false>(pair(column.way[bar + 1]), pair(column.way[bar + 1 - length]));
    if (numbers < length) way = NA;
    else if (bounded < length) way = INFINITE;
    y = pine_next(y, now, x[bar - length], way, 0.666 - 0.064, 0.064);
    return y;
  }
};

struct AtcShared {
  double equity[N_FAMILIES][ATC_TILE][ATC_LANES + 1];
  signed char signal[N_FAMILIES][ATC_TILE][ATC_LANES + 1];
  double layer1[N_FAMILIES][ATC_ITEMS][ATC_TILE];
  double layer2[N_FAMILIES][ATC_ITEMS][ATC_TILE];
  double change[ATC_ITEMS][ATC_TILE];
};

// The items of a block, and what holds for those of a lane.
struct Items {
  u32 first, n_items, symbol, start, n;

  __device__ __forceinline__ u32 at(u32 item) const { return first + min(item, n_items - 1); }
};

__device__ __forceinline__ bool is_valid(const ColumnArgs& args, u32 j) {
  u32 middle = window_of(args, 0, j);
  double decay = args.arguments[2][args.trial[j]] / 100.0;
  return middle >= 1 && middle <= ATC_MAX_LENGTH && is_finite(rate_of(args, j)) && decay >= 0.0 && decay <= 1.0;
}

template <class Average>
__device__ __forceinline__ void atc_along(const ColumnArgs& args, AtcShared& shared, const Items& items, u32 family) {
  u32 lane = threadIdx.x % 32;
  u32 place = min(lane, (u32)ATC_LANES - 1);
  u32 j = items.at(place / N_LENGTHS);
  u32 middle = is_valid(args, j) ? window_of(args, 0, j) : 1;
  double keep = 1.0 - args.arguments[2][args.trial[j]] / 100.0;
  // Lanes of layer 2 have an item each.
  double account_keep = 1.0 - args.arguments[2][args.trial[items.at(min(lane, (u32)ATC_ITEMS - 1))]] / 100.0;
  const double* x = input_of(args, 0, j) + items.start;
  Average average(x, column_of(args, j, items.symbol), length_of(middle, place % N_LENGTHS));
  double price_before = NA, average_before = NA, equity = NA, account = NA, vote_before = NA;
  i32 signal = 0;
  for (u32 from = 0; from < items.n; from += ATC_TILE) {
    u32 n_bars = min(items.n - from, (u32)ATC_TILE);
    meet_block();
    for (u32 i = threadIdx.x; i < ATC_ITEMS * ATC_TILE; i += 32 * N_FAMILIES) {
      u32 bar = from + i % ATC_TILE;
      if (bar >= items.n) continue;
      u32 of = items.at(i / ATC_TILE);
      const double* series = input_of(args, 0, of) + items.start;
      double before = bar ? series[bar - 1] : NA;
      double change = before == 0.0 ? 0.0 : series[bar] / before - 1.0;
      double r = change * growth_of(args, of)[items.start + bar];
      shared.change[i / ATC_TILE][i % ATC_TILE] = is_nan(r) ? 0.0 : r;
    }
    meet_block();
    for (u32 k = 0; k < n_bars; k++) {
      double price = __ldg(x + from + k);
      double now = average.push(from + k, price);
      double r = shared.change[place / N_LENGTHS][k];
      equity = next_equity(equity, signal > 0 ? 1.0 + r : signal < 0 ? 1.0 - r : 1.0, 1.0, keep, 0.25);
      if (price > now && price_before <= average_before) signal = 1;
      else if (price < now && price_before >= average_before) signal = -1;
      price_before = price;
      average_before = now;
      if (lane < ATC_LANES) {
        shared.equity[family][k][lane] = equity;
        shared.signal[family][k][lane] = (signed char)signal;
      }
    }
    __syncwarp();
    for (u32 i = lane; i < ATC_ITEMS * ATC_TILE; i += 32) {
      u32 item = i / ATC_TILE, k = i % ATC_TILE;
      if (k >= n_bars) continue;
      double votes = 0.0, weight = 0.0;
      for (u32 of = 0; of < N_LENGTHS; of++) {
        double here = shared.equity[family][k][item * N_LENGTHS + of];
        votes += (double)shared.signal[family][k][item * N_LENGTHS + of] * here;
        weight += here;
      }
      shared.layer1[family][item][k] = finish_vote(votes, weight, true);
    }
    __syncwarp();
    if (lane < ATC_ITEMS) {
      for (u32 k = 0; k < n_bars; k++) {
        double r = shared.change[lane][k];
        double factor = factor_of(vote_before, Move(r));
        account = next_equity(account, factor, 1.0, account_keep, 0.25);
        shared.layer2[family][lane][k] = account;
        vote_before = shared.layer1[family][lane][k];
      }
    }
    meet_block();
    for (u32 i = threadIdx.x; i < ATC_ITEMS * ATC_TILE; i += 32 * N_FAMILIES) {
      u32 item = i / ATC_TILE, k = i % ATC_TILE, bar = from + k;
      if (item >= items.n_items || k >= n_bars) continue;
      u32 of = items.first + item;
      double votes = 0.0, weight = 0.0;
      for (u32 f = 0; f < N_FAMILIES; f++) {
        double vote = shared.layer1[f][item][k], here = shared.layer2[f][item][k];
        votes += (vote > 0.1 ? 1.0 : vote < -0.1 ? -1.0 : 0.0) * here;
        weight += here;
      }
      double result = votes / weight;
      result = is_finite(result) ? result : 0.0;
      bool has_value = is_valid(args, of) && bar + 1 >= length_of(window_of(args, 0, of), 4);
      output_of(args, of)[items.start + bar] = has_value ? result : NA;
    }
  }
}

KERNEL(atc, ColumnArgs) {
  __shared__ AtcShared shared;
  u32 n_groups = (args.count + ATC_ITEMS - 1) / ATC_ITEMS;
  u32 symbol = blockIdx.x / n_groups, first = blockIdx.x % n_groups * ATC_ITEMS;
  u32 start = args.start[symbol];
  Items items = {first, min(args.count - first, (u32)ATC_ITEMS), symbol, start, args.start[symbol + 1] - start};
  switch (threadIdx.x / 32) {
    case 0: atc_along<ExponentialLane>(args, shared, items, 0); break;
    case 1: atc_along<SimpleLane>(args, shared, items, 1); break;
    case 2: atc_along<WeightedLane>(args, shared, items, 2); break;
    case 3: atc_along<DoubleExponentialLane>(args, shared, items, 3); break;
    case 4: atc_along<LineLane>(args, shared, items, 4); break;
    default: atc_along<AdaptiveLane>(args, shared, items, 5);
  }
}

}  // namespace atc
