/** What `parseArgs` of Node.js says is wrong: the first of its sentences, as the others advise on what no flag here needs. */
export function parseProblem(error: unknown): string {
  return (error as Error).message.split(/\.\s/)[0] ?? '';
}
