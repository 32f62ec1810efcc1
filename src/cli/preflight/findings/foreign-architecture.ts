/** The Pod runs on nodes for which there is no image. */
import { defineFinding } from './preflight-finding.ts';

const built: Readonly<Record<string, readonly string[]>> = {
  'kubernetes.io/arch': ['amd64', 'arm64'],
  'kubernetes.io/os': ['linux'],
};

export const foreignArchitecture = defineFinding({
  name: 'architecture',
  check({ workload: { pod } }) {
    return [...pod.textMap('nodeSelector')].flatMap(([label, value]) => {
      const values = built[label];
      if (values === undefined || values.includes(value)) return [];
      const message = `Its nodeSelector selects nodes with ${label}=${value}; images are built for ${values.join(' and ')}.`;
      return [{ level: 'must' as const, message, cure: 'Build the image for these nodes: docs/deploy.md.' }];
    });
  },
});
