/** The address that GitHub gives to a heading. */
function anchorOf(heading: string): string {
  return heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, '')
    .replaceAll(' ', '-');
}

/** The addresses of all headings of a Markdown page. */
export function anchorsOf(page: string): Set<string> {
  return new Set([...page.matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) => anchorOf(heading)));
}
