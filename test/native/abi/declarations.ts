// What a C header declares, as rows of layouts.cc. For our own headers: one declaration a line or
// more, no macros that make declarations, no bit fields.

/** Text between the brace at `open` and its partner. */
function braced(text: string, open: number): string {
  let depth = 0;
  for (let i = open; i < text.length; i++) {
    if (text[i] === '{') depth++;
    if (text[i] === '}' && --depth === 0) return text.slice(open + 1, i);
  }
  throw new Error('unbalanced braces');
}

/** Paths of all members of a struct, those of structs within it too. */
function membersOf(body: string, prefix = ''): string[] {
  const members: string[] = [];
  for (let i = 0; i < body.length;) {
    const nested = /^\s*(?:struct|union)\s*\{/.exec(body.slice(i));
    if (nested) {
      const inner = braced(body, i + nested[0].length - 1);
      const behind = i + nested[0].length + inner.length + 1;
      const end = body.indexOf(';', behind);
      const name = body.slice(behind, end).trim();
      if (name !== '') members.push(prefix + name);
      members.push(...membersOf(inner, name === '' ? prefix : `${prefix}${name}.`));
      i = end + 1;
      continue;
    }
    const end = body.indexOf(';', i);
    if (end < 0) break;
    members.push(...namesOf(body.slice(i, end)).map((name) => prefix + name));
    i = end + 1;
  }
  return members;
}

/** Names in one declaration: `int a, *b`, `void *c[7]`, `int (*call)(int)`. */
function namesOf(declaration: string): string[] {
  const call = /\(\*(\w+)\)/.exec(declaration)?.[1];
  if (call !== undefined) return [call];
  return declaration
    .split(',')
    .map((part) => /(\w+)\s*(?:\[[^\]]*\])?\s*$/.exec(part)?.[1] ?? '')
    .filter((name) => name !== '');
}

/** Rows for every struct, union, enumerator and function, but for what `isOurs` names. */
export function rowsOf(header: string, isOurs: (name: string) => boolean): string[] {
  const text = header.replace(/\/\*[^]*?\*\//g, '').replace(/\/\/.*|^#.*/gm, '');
  const rows: string[] = [];
  for (const match of text.matchAll(/^(struct|union) (\w+) \{/gm)) {
    const [whole, kind = '', name = ''] = match;
    const type = `${kind} ${name}`;
    const members = membersOf(braced(text, match.index + whole.length - 1));
    if (isOurs(name)) continue;
    rows.push(`SIZE(${type})`);
    const known = members.filter((member) => !isOurs(`${name}.${member}`));
    rows.push(...known.map((member) => `MEMBER(${type}, ${member})`));
  }
  for (const match of text.matchAll(/enum\s*\w*\s*\{([^}]*)\}/g)) {
    const names = (match[1] ?? '').split(',').map((part) => /^\s*(\w+)/.exec(part)?.[1] ?? '');
    rows.push(...names.filter((name) => name !== '' && !isOurs(name)).map((n) => `VALUE(${n})`));
  }
  for (const match of text.matchAll(/^[a-z][^;{}()=]*?\b(_?(?:ibv|rdma)_\w+)\(/gm)) {
    const name = match[1] ?? '';
    if (!isOurs(name)) rows.push(`CALL(${name})`);
  }
  return rows;
}
