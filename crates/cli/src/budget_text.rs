//! A budget that is used up, or nearly so, in words.

use rekindle_domain::event::{BudgetNotice, BudgetPart};

/// Says how much of a budget is used.
pub(crate) fn sentence(notice: &BudgetNotice) -> String {
    let BudgetNotice { scope, part, used, limit, exceeded } = *notice;
    let amount = match part {
        BudgetPart::Cost => format!("{used:.2} of {limit:.2} (cost)"),
        BudgetPart::WallTime => format!("{used:.0} of {limit:.0} s"),
        part => format!("{used:.0} of {limit:.0} {}", part.name()),
    };
    let end = if exceeded { ": nothing is left" } else { "" };
    format!("the {} has used {amount}{end}", scope.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rekindle_domain::event::BudgetScope;

    #[test]
    fn each_part_is_told_in_its_unit() {
        for (part, used, limit, exceeded, told) in [
            (BudgetPart::Tokens, 810.0, 1_000.0, false, "the day has used 810 of 1000 tokens"),
            (BudgetPart::Cost, 4.1, 5.0, false, "the day has used 4.10 of 5.00 (cost)"),
            (BudgetPart::WallTime, 60.2, 60.0, true, "the day has used 60 of 60 s: nothing is left"),
        ] {
            let notice = BudgetNotice { scope: BudgetScope::Day, part, used, limit, exceeded };
            assert_eq!(sentence(&notice), told);
        }
    }
}
