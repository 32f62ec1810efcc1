/** Rights that are only needed where the driver or users ask for something that no manifest shows. */
import { lackingRights, rightsText, ruleOf } from '../lacking-rights.ts';
import { defineFinding } from './preflight-finding.ts';

export const conditionalRights = defineFinding({
  name: 'conditional-rights',
  check(facts) {
    const lacking = lackingRights(facts).filter(({ state }) => state.state === 'depends');
    if (lacking.length === 0) return [];
    const byUse = Map.groupBy(lacking, ({ state }) => state.why);
    const cases = [...byUse].map(([use, own]) => `${own.map(rightsText).join(', ')}, if ${use}`);
    return [
      {
        level: 'note',
        message: `Not granted, and needed only in these cases, by the Go sidecar as well: ${cases.join('; ')}.`,
        cure: 'Add the rules for the cases that occur.',
        rules: lacking.map(ruleOf),
        isConditional: true,
      },
    ];
  },
});
