/** A permission that the API server says is missing: the rule that grants it, and how it is granted. */
import { shellCommand } from '../base/shell-word.ts';

export interface MissingRight {
  user: string;
  verb: string;
  /** With a subresource such as in `persistentvolumes/status`. */
  resource: string;
  /** Empty for the core group. */
  group: string;
  /** Undefined at the scope of the cluster. */
  namespace?: string | undefined;
}

const forbidden =
  /User "([^"]+)" cannot ([a-z]+) resource "([^"]+)" in API group "([^"]*)"(?: in the namespace "([^"]+)")?/;

/** What a text of the API server says that somebody may not do (Kubernetes page "Authorization"). */
export function missingRight(text: string): MissingRight | undefined {
  const [, user, verb = '', resource = '', group = '', namespace] = forbidden.exec(text) ?? [];
  return user === undefined ? undefined : { user, verb, resource, group, namespace };
}

/** The rule for a Role or ClusterRole, on one line. */
function ruleText({ verbs, resource, group }: { verbs: readonly string[]; resource: string; group: string }): string {
  const listed = verbs.map((verb) => `"${verb}"`).join(', ');
  return `{apiGroups: ["${group}"], resources: ["${resource}"], verbs: [${listed}]}`;
}

/** A cache needs both. */
function verbsOf(verb: string): string[] {
  return verb === 'list' || verb === 'watch' ? ['list', 'watch'] : [verb];
}

/** How a program gets it: the rule, and a command where its name can be copied. */
export function rightCure({ user, verb, resource, group, namespace }: MissingRight): string {
  const verbs = verbsOf(verb);
  const rule = ruleText({ verbs, resource, group });
  const [, accountNamespace = '', account] = /^system:serviceaccount:([^:]+):([^:]+)$/.exec(user) ?? [];
  const role = namespace === undefined ? 'clusterrole' : 'role';
  const name = `${account ?? 'csi-provisioner'}-${verb}-${resource.replace('/', '-')}`;
  const where = namespace === undefined ? [] : ['-n', namespace];
  const [plural = '', ...subresource] = resource.split('/');
  const full = [group === '' ? plural : `${plural}.${group}`, ...subresource].join('/');
  const subject = account === undefined ? `--user=${user}` : `--serviceaccount=${accountNamespace}:${account}`;
  const commands = [
    ['kubectl', 'create', role, name, `--verb=${verbs.join(',')}`, `--resource=${full}`, ...where],
    ['kubectl', 'create', `${role}binding`, name, `--${role}=${name}`, subject, ...where],
  ].map(shellCommand);
  const text = `Add the rule ${rule} to a ${namespace === undefined ? 'ClusterRole' : `Role in namespace ${namespace}`} of ${user}`;
  return commands.includes(undefined) ? text : `${text}, such as by: ${commands.join(' && ')}`;
}

/** The rules for what a reader may not read, by the texts that say so. */
export function rulesToRead(texts: readonly string[]): string[] {
  const rules = texts.flatMap((text) => {
    const [, verb, plural = '', group = ''] =
      /the permission to ([a-z]+) ([a-z]+)(?:\.(\S+))? .*is missing/.exec(text) ?? [];
    return verb === undefined ? [] : [ruleText({ verbs: [verb], resource: plural, group })];
  });
  return [...new Set(rules)];
}
