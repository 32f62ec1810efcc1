/** Rights that the ServiceAccount lacks for what is on here. */
import { type LackingRights, lackingRights, ruleOf, verbsText } from '../lacking-rights.ts';
import { defineFinding, type Found } from './preflight-finding.ts';

export const missingRights = defineFinding({
  name: 'missing-right',
  check(facts) {
    return lackingRights(facts)
      .filter(({ needed, state }) => state.state === 'on' && needed.feature !== 'journal')
      .map((lacking) => found(lacking));
  },
});

function found(lacking: LackingRights): Found {
  const { needed, state } = lacking;
  const reason = state.why === '' ? '' : ` (on, since ${state.why})`;
  return {
    level: needed.level,
    message: `${verbsText(lacking)} for ${needed.feature}${reason}. Without it ${needed.without}. The Go sidecar ${needed.go}.`,
    cure: 'Add the rule.',
    rules: [ruleOf(lacking)],
  };
}
