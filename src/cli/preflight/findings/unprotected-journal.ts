/** The intent journal cannot be written: nothing protects volumes from a crash. */
import { lackingRights, ruleOf, verbsText } from '../lacking-rights.ts';
import { defineFinding } from './preflight-finding.ts';

export const unprotectedJournal = defineFinding({
  name: 'no-journal',
  check(facts) {
    const lacking = lackingRights(facts).filter(
      ({ needed, state }) => needed.feature === 'journal' && state.state === 'on',
    );
    return lacking.map((each) => ({
      level: each.needed.level,
      message: `${verbsText(each)} for the intent journal. Without it ${each.needed.without}.`,
      cure: 'Add the rule, or set --intent-journal=off to work without the journal and without that report.',
      rules: [ruleOf(each)],
    }));
  },
});
