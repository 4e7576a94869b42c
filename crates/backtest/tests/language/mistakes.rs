//! Messages for common mistakes: the text, its place, and the hint where there is one.

use tidemill_backtest::Overrides;

use crate::{check_message, load, load_with, with_enter};

#[test]
fn common_mistakes_have_a_message_a_place_and_a_cure() {
    let expressions: &[(&str, &str, &str)] = &[
        ("close > fas", "7:18: unknown name `fas`", "did you mean `fast`?"),
        ("close > emaa(close, n)", "7:18: unknown function `emaa`", "did you mean `ema(x, n)`?"),
        ("ema > 3", "unknown name `ema`", "`ema` is a function: ema(x, n)"),
        ("ema(close) > 3", "`ema` takes 2 arguments, found 1", "write ema(x, n)"),
        ("close", "7:10: expected a condition, found a number", "compare it"),
        ("1 < close < 3", "7:20: comparisons cannot be chained", "a < b and b < c"),
        ("close = 3", "7:16: unexpected `=`", "equality is `==`"),
        ("close > 3 && high > 4", "7:20: unexpected character `&`", "write `and`"),
        ("close[-1] > 3", "7:16: a negative index would look into the future", ""),
        ("close[close] > 3", "how many bars ago must be an integer of parameters", "round"),
        ("close[0.5] > 3", "how many bars ago must be an integer of parameters", "round"),
        ("3[1] > 2", "only a series can be read in the past", ""),
        ("entry > 3", "7:10: `entry` is not known here", "`entry` is known in levels"),
        ("mode > 3", "`mode` is a choice of words", "mode == '…'"),
        ("mode == 'wild'", "`mode` has no option 'wild'; it has 'wide', 'tight'", ""),
        ("close == 'wide'", "`close` is not a choice parameter", ""),
        ("'wide' > 3", "text 'wide' is not allowed here", "compared with a choice"),
        ("ema(close, n / 2) > 3", "7:21: `ema` needs an integer here", "wrap it in round(…)"),
        ("ema(close, close) > 3", "`ema` needs a number of parameters here, found a series", ""),
        ("ema(3, n) > 3", "`ema` needs a series here, found a number", ""),
        ("ema(close, 0) > 3", "`ema` needs at least 1 here", ""),
        ("macd(close, 3, 9, 4) > 0", "`macd` has several outputs", ".line, .signal, .hist"),
        ("macd(close, 3, 9, 4).hits > 0", "`macd` has no output `hits`; it has line, signal, hist", ""),
        ("ema(close, n).line > 0", "`ema` has only one output", ""),
        ("if(close > 1, 2, close > 3)", "both branches of `if` must be numbers, or both conditions", ""),
        ("close > 1 + (high > 2)", "expected a number, found a condition", ""),
        ("not close", "expected a condition, found a number", ""),
        ("close >", "7:17: expected a value, found the end", ""),
        ("(close > 1", "expected `)`, found the end", ""),
        ("close > 1 2", "expected an operator or the end, found `2`", ""),
        ("bars('soon') > 1", "expected a duration", "bars('15m')"),
        (
            "session('America/NewYork', '09:30-16:00')",
            "7:18: there is no time zone 'America/NewYork'",
            "did you mean 'America/New_York'?",
        ),
        ("session('tokyo', '09:00-15:00')", "there is no time zone 'tokyo'", "did you mean 'Asia/Tokyo'?"),
        ("session('UTC', '9-16')", "7:25: '9-16' is not a session", "'09:30-16:00'"),
        ("session('UTC', '09:30-09:30')", "7:25: the session '09:30-09:30' never opens", "'00:00-24:00'"),
        ("session(close, '09:30-16:00')", "expected a text in single quotes", "'America/New_York'"),
        (
            "session('UTC') and close > 1",
            "`session` takes 2 arguments, found 1",
            "write session(zone, hours)",
        ),
        ("session_bar('UTC', '09:30-16:00')", "expected a condition, found a number", ""),
        ("hl3 > 3", "unknown name `hl3`", "did you mean `hl2`?"),
        ("close > 1e999", "too large for a number", ""),
        ("tf('15m', close) > 1", "7:13: '15m' is shorter than the bars of the data, 1h", "load shorter ones"),
        ("tf('5h', close) > 1", "'5h' is not a whole number of the bars of the data, 4h", "'4h' would do"),
        ("tf('8d', close) > 1", "'8d' is longer than a week", ""),
        ("tf('soon', close) > 1", "'soon' is no timeframe", "for example '15m'"),
        ("tf(mode, close) > 1", "'wide', an option of `mode`, is no timeframe", ""),
        ("tf(n, close) > 1", "`n` is no choice of timeframes", "choice = ["),
        ("tf(4, close) > 1", "expected a timeframe", "tf('4h', close)"),
        ("tf('4h', tf('1d', close)) > 1", "`tf` cannot stand inside `tf`", "not inside"),
        ("tf('4h', of('BTCUSDT', close)) > 1", "`of` cannot stand inside `tf`", "of('BTCUSDT', tf('4h', x))"),
        ("tf('4h', rank(close)) > 1", "`rank` cannot stand inside `tf`", "rank(tf('4h', x))"),
        ("tf('4h', n) > 1", "`tf` needs a series here, found a number", "write tf('4h', x)"),
        (
            "of('BTCUSD', close) > 1",
            "7:13: there is no symbol 'BTCUSD' in the data",
            "did you mean 'BTCUSDT'?",
        ),
        (
            "of('X', close) > 1",
            "7:13: there is no symbol 'X' in the data",
            "the data has BTCUSDT, ETHUSDT, SLOW: add that of X to --data",
        ),
        ("of(mode, close) > 1", "expected the name of a symbol in quotes", "of('BTCUSDT', close)"),
        ("of('SLOW', of('BTCUSDT', close)) > 1", "`of` cannot stand inside `of`", "beside"),
        ("of('SLOW', rank(close)) > 1", "`rank` cannot stand inside `of`", ""),
        ("of('SLOW', close, 3) > 1", "expected a duration", "'4h'"),
        ("of('SLOW') > 1", "`of` takes 2 to 3 arguments, found 1", "write of("),
        ("rank(3) > 1", "`rank` needs a series here, found a number", "write rank(x)"),
        ("rank(sma(close, bars('1d'))) > 1", "`bars` means another number for each symbol", "bars of 1h, 4h"),
        ("self > 1", "7:10: `self` is not known here", "recur(start, next)"),
        ("recur(self, close) > 1", "`self` is not known here", ""),
        ("recur(close, self[1]) > 1", "`self` has no past", "under [let]"),
        (
            "recur(close, ema(self, 3)) > 1",
            "7:27: `ema` reads several bars, and `self` is only the last value",
            "put the recursion under [let]",
        ),
        ("recur(close, crosses_above(close, self)) > 1", "`crosses_above` reads several bars", ""),
        (
            "recur(close, recur(self, self + 1)) > 1",
            "`self` of a recursion further out is not known here",
            "",
        ),
        (
            "recur(close, tf('4h', self)) > 1",
            "`self` of a recursion further out is not known here",
            "take it out",
        ),
        ("recur(close, rank(self)) > 1", "`self` of a recursion further out is not known here", ""),
        ("recur(close, close > self) > 1", "expected a number, found a condition", "if(condition, 1, 0)"),
        (
            "recur(close, prev + 1) > 1",
            "7:23: unknown name `prev`",
            "the last value of a recursion is `self`",
        ),
        ("tf(4h, close) > 1", "7:14: expected `)`, found `h`", "a duration stands in quotes: '4h'"),
        (
            "tf(close, '4h') > 1",
            "7:13: `close` is no choice of timeframes",
            "the timeframe stands first: tf('4h', close)",
        ),
        ("of('eth', close) > 1", "there is no symbol 'eth' in the data", "did you mean 'ETHUSDT'?"),
        ("ETHUSDT.close > 1", "`.close` must follow a function", "of('ETHUSDT', close)"),
        ("rank(close, 3) > 1", "`rank` takes 1 argument, found 2", "write rank(x)"),
        ("security('X', '4h', close) > 1", "unknown function `security`", "longer bars are tf('4h', x)"),
        ("ta.ema(close, 5) > 1", "7:13: functions have no prefix", "write ema(…)"),
    ];
    for (enter, message, hint) in expressions {
        let found = load(&with_enter(enter)).map(|_| ()).expect_err(enter);
        check_message(&found);
        assert!(found.contains(message), "`{enter}` gives\n{found}\nwithout\n{message}");
        assert!(found.contains(hint), "`{enter}` gives\n{found}\nwithout the hint\n{hint}");
    }
    let files: &[(&str, &str, &str)] = &[
        ("", "1:1: the strategy has no [long] and no [short] section", "add one"),
        ("[long]\nexit = 'true'\n", "[long] has no `enter`", ""),
        ("[long]\n", "[long] has no `enter`", ""),
        ("[long]\nentr = 'true'\n", "2:1: unknown key `entr` in [long]", "did you mean `enter`?"),
        (
            "[long]\nenter = 'true'\n[exection]\n",
            "unknown key `exection` in a strategy file",
            "did you mean `execution`?",
        ),
        ("[long]\nenter = 'true'\n[book]\n", "3:2: [book] is not available yet", "traded by itself"),
        ("[long]\nenter = 'true'\n[rebalance]\n", "[rebalance] is not available yet", "rank("),
        ("[long]\nenter = 'true'\n[symbols]\ntrade = 'A'\n", "[symbols] is not available yet", "--trade"),
        ("long = 3\n", "[long] must be a table, found an integer", ""),
        ("[long]\nenter = [1]\n", "`enter` must be an expression in quotes, found an array", ""),
        (
            "[long]\nenter = 'true'\nstop = '1'\n[[long.exits]]\nkind = 'time'\nbars = '3'\n",
            "`stop` and [[long.exits]] cannot be combined",
            "one [[exits]] entry",
        ),
        ("[long]\nenter = 'true'\n[[long.exits]]\nbars = '3'\n", "an exit needs a `kind`", "stop, target"),
        (
            "[long]\nenter = 'true'\n[[long.exits]]\nkind = 'halt'\nbars = '3'\n",
            "`kind` must be one of \"stop\"",
            "",
        ),
        (
            "[long]\nenter = 'true'\n[[long.exits]]\nkind = 'time'\nlevel = '3'\n",
            "a time exit needs `bars = \"…\"`",
            "",
        ),
        (
            "[long]\nenter = 'true'\ntarget = 'entry + stop'\n",
            "`stop` is used, but this side has no stop",
            "",
        ),
        ("[long]\nenter = 'true'\nstop = 'risk'\n", "`risk` is not known here", ""),
        (
            "[long]\nenter = 'true'\n[[long.exits]]\nkind = 'time'\nbars = '3'\nlabel = 'a{close}'\n",
            "a label shows parameters, not series",
            "",
        ),
        (
            "[long]\nenter = 'true'\n[[long.exits]]\nkind = 'time'\nbars = '3'\nlabel = 'a{'\n",
            "is not closed",
            "",
        ),
        (
            "[long]\nenter = 'true'\nsize = '0.5'\n[execution]\nsizing = 'unit'\n",
            "3:9: `size` is a share of equity, and sizing = \"unit\" has none",
            "leave `size` away",
        ),
        ("[long]\nenter = 'true'\nsize = 'entry / stop'\n", "`stop` is used, but this side has no stop", ""),
        ("[long]\nenter = 'true'\nsize = 'close > 1'\n", "expected a number, found a condition", ""),
        (
            "[long]\nenter = 'true'\nexits = [{ kind = 'stop', series = 'ema(close, 9)', level = '3' }]\n",
            "a stop has a `level` or follows a `series`, not both",
            "write two exits",
        ),
        (
            "[long]\nenter = 'true'\nexits = [{ kind = 'stop', series = '3' }]\n",
            "a stop follows a series, found a number",
            "write level",
        ),
        (
            "[long]\nenter = 'true'\nexits = [{ kind = 'stop', series = 'entry - atr(3)' }]\n",
            "`entry` is not known here",
            "",
        ),
        (
            "[long]\nenter = 'true'\n[execution]\nfee_bps = { maker = 2 }\n",
            "4:11: `fee_bps` has no kind `maker`",
            "{ market = 5, stop = 10, limit = 0 }",
        ),
        (
            "[long]\nenter = 'true'\n[execution]\nslippage_bps = { stop = 2 }\n",
            "4:16: `slippage_bps` needs at least `market`",
            "",
        ),
        (
            "[long]\nenter = 'true'\n[execution]\nfee_bps = { market = -1 }\n",
            "`fee_bps` must be basis points",
            "",
        ),
        ("[let]\na = 'b + 1'\nb = 'a + 1'\n[long]\nenter = 'close > a'\n", "depends on itself", ""),
        ("[let]\na = 'a[1]'\n[long]\nenter = 'close > a'\n", "`a` depends on itself", ""),
        (
            "[let]\nclose = '1'\n[long]\nenter = 'close > 1'\n",
            "`close` under [let] is already a built-in name",
            "",
        ),
        (
            "[params]\nn = { int = [9, 5] }\n[long]\nenter = 'close > n'\n",
            "the range [9, 5] is empty or too large",
            "",
        ),
        (
            "[params]\nn = { int = [1, 5], default = 7 }\n[long]\nenter = 'close > n'\n",
            "the default of `n` lies outside its range",
            "",
        ),
        (
            "[params]\nn = { int = [1.5, 5] }\n[long]\nenter = 'close > n'\n",
            "an int range needs two integers",
            "",
        ),
        (
            "[params]\nn = { int = [1, 5], float = [1, 2] }\n[long]\nenter = 'close > n'\n",
            "needs exactly one of int, float, choice, bool",
            "",
        ),
        (
            "[params]\nn = { choice = ['a', 1] }\n[long]\nenter = 'true'\n",
            "options are all text or all numbers",
            "",
        ),
        ("[params]\nn = { choice = [] }\n[long]\nenter = 'true'\n", "a choice needs at least one option", ""),
        (
            "[params]\nn = { float = [0, 5], log = true }\n[long]\nenter = 'true'\n",
            "a logarithmic range must be above 0",
            "",
        ),
        (
            "[params]\na = { bool = true, when = 'b' }\nb = { bool = true, when = 'a' }\n[long]\nenter = 'a'\n",
            "depends on itself",
            "",
        ),
        (
            "[params]\na = { bool = true, when = 'close > 1' }\n[long]\nenter = 'a'\n",
            "a parameter's condition may use parameters only",
            "",
        ),
        (
            "[long]\nenter = 'true'\n[execution]\nfill = 'tomorrow'\n",
            "`fill` must be one of \"next_open\", \"close\"",
            "",
        ),
        ("[long]\nenter = 'true'\n[execution]\nfee_bps = -1\n", "`fee_bps` must be basis points", ""),
        (
            "[long]\nenter = 'true'\n[execution]\nsizing = { fraction = 2 }\n",
            "`sizing` must be \"all_in\"",
            "",
        ),
        ("[long]\nenter = 'true'\n[execution]\ncooldown = 1.5\n", "`cooldown` must be a number of bars", ""),
        (
            "[long]\nenter = 'true'\n[objective]\nmaximize = 'sharp'\n",
            "`sharp` is no metric and no parameter",
            "did you mean `sharpe`?",
        ),
        ("[long]\nenter = 'true'\n[objective]\nreduce = 'best'\n", "`reduce` must be one of \"mean\"", ""),
        ("[long\nenter = 'true'\n", "1:", ""),
        ("[long]\nenter = 'true'\nenter = 'false'\n", "3:1: ", ""),
    ];
    for (source, message, hint) in files {
        let found = load(source).map(|_| ()).expect_err(source);
        check_message(&found);
        assert!(found.contains(message), "{source}\ngives\n{found}\nwithout\n{message}");
        assert!(found.contains(hint), "{source}\ngives\n{found}\nwithout the hint\n{hint}");
    }
}

#[test]
fn all_errors_of_a_file_come_at_once_in_the_order_of_their_places() {
    let syntax = load(
        "[params]\nn = { int = [9, 5] }\n[let]\na = 'b +'\n[long]\nenter = '1 <'\n[execution]\nfill = 3\nfoo = 1\n",
    );
    let message = syntax.map(|_| ()).unwrap_err();
    let places: Vec<&str> = message
        .lines()
        .filter_map(|line| line.strip_prefix("a.toml:"))
        .map(|line| line.split(' ').next().unwrap())
        .collect();
    assert_eq!(places, ["2:13:", "4:9:", "6:13:", "8:8:", "9:1:"], "{message}");
    let names = load(
        "[let]\na = 'one'\nb = 'ema(two, 3)'\n[long]\nenter = 'three > 1 and four'\nstop = 'five'\n[objective]\nmaximize = 'six'\n",
    );
    let message = names.map(|_| ()).unwrap_err();
    for name in ["one", "two", "three", "four", "five", "six"] {
        assert!(message.contains(&format!("`{name}`")), "no word about {name}: {message}");
    }
}

#[test]
fn bad_settings_are_refused_with_the_names_there_are() {
    let source = with_enter("close > fast");
    let set = |name: &str, value: &str| {
        let set = vec![(name.to_string(), value.to_string())];
        load_with(&source, &Overrides { set, ..Overrides::default() }).map(|_| ()).unwrap_err()
    };
    assert!(set("m", "3").contains("no parameter or execution key `m`"));
    assert!(set("mod", "3").contains("did you mean `mode`?"));
    assert!(set("mode", "wild").contains("`mode` must be one of wide, tight"));
    assert!(set("n", "2.5").contains("`n` is an integer"));
    assert!(set("n", "").contains("`n` is an integer"));
    assert!(set("fee_bps", "much").contains("basis points"));
    let profile = Overrides { profile: Some("fast".into()), ..Overrides::default() };
    assert!(load_with(&source, &profile).map(|_| ()).unwrap_err().contains("no profile `fast`"));
}
