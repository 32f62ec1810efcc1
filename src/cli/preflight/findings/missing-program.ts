/** A probe or hook runs a program in the container. */
import { nameList } from '../../../base/name-list.ts';
import { programInImage } from '../../program-in-image.ts';
import { defineFinding } from './preflight-finding.ts';

export const missingProgram = defineFinding({
  name: 'exec',
  check({ container: { fields } }) {
    const lifecycle = fields.part('lifecycle');
    const handlers = [
      ...(['livenessProbe', 'readinessProbe', 'startupProbe'] as const).map(
        (name) => [name, fields.part(name)] as const,
      ),
      ...(['postStart', 'preStop'] as const).map((name) => [name, lifecycle?.part(name)] as const),
    ];
    const running = handlers.filter(([, handler]) => {
      const command = handler?.part('exec')?.texts('command') ?? [];
      return command.length > 0 && !programInImage.every((word) => command.includes(word));
    });
    if (running.length === 0) return [];
    const names = nameList(
      running.map(([name]) => name),
      5,
    );
    return [
      {
        level: 'must',
        message: `Its ${names} ${running.length === 1 ? 'runs' : 'run'} a program in the container. This image has no other program than the sidecar, and no shell.`,
        cure: 'For a probe use httpGet, with --http-endpoint; for preStop use sleep; or remove it.',
      },
    ];
  },
});
