// docs/guides: the programs of these pages print what stands below them.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { guide, ProgramFolder } from '../../support/guide-page.js';
import { longIt } from '../../support/lane.js';
import { networkOf } from '../../support/loopback.js';

const PAGES = ['concepts', 'connections', 'errors', 'events', 'first-transfer', 'memory'];
/** What the quick lane tries: the other pages are long. */
const QUICK_PAGES = ['concepts', 'events', 'first-transfer'];
/** It waits for the program below it, which is its peer. */
const RECEIVER = 'receiver.mjs';
/** Of the addresses that take the place of 127.0.0.x. */
const OWN = `${networkOf(1)}.`;

interface Program {
  readonly name: string;
  /** Undefined of a module, which others import. */
  readonly prints: string | undefined;
}

/** A block of text right below a program is what it prints. */
function programsOf(text: string): Program[] {
  const blocks = text.matchAll(
    /^`([\w-]+\.mjs)`:\n\n```js\n(?:(?!^```)[^])*```\n(?:\n```text\n((?:(?!^```)[^])*)```)?/gm,
  );
  return [...blocks].map(([, name = '', prints]) => ({ name, prints }));
}

const texts = new Map(PAGES.map((page) => [page, guide(page)]));
const everything = [...texts.values()].join('\n');

describe('docs/guides', () => {
  const folder = new ProgramFolder().addAll(everything);

  async function run({ name, prints }: Program): Promise<void> {
    const { stdout, stderr } = await folder.run([name]);
    assert.deepEqual({ printed: asPrinted(stdout), stderr }, { printed: prints, stderr: '' });
  }

  async function runBoth(receiver: Program, sender: Program): Promise<void> {
    const child = folder.start([receiver.name]);
    const closed = once(child, 'close');
    let output = '';
    child.stdout.setEncoding('utf8').on('data', (part: string) => (output += part));
    try {
      await Promise.race([once(child.stdout, 'data'), closed]);
      await run(sender);
    } catch (error) {
      child.kill();
      throw error;
    }
    assert.deepEqual(await closed, [0, null]);
    assert.equal(asPrinted(output), receiver.prints);
  }

  for (const [page, text] of texts) {
    describe(`${page}.md`, () => {
      const programs = programsOf(text);
      const print = QUICK_PAGES.includes(page) ? it : longIt;
      for (const [i, program] of programs.entries()) {
        const { name, prints } = program;
        if (prints === undefined || programs[i - 1]?.name === RECEIVER) continue;
        const peer = programs[i + 1];
        if (name === RECEIVER && peer !== undefined) {
          print(`${name} and ${peer.name} print what stands below them`, () =>
            runBoth(program, peer),
          );
        } else {
          print(`${name} prints what stands below it`, () => run(program));
        }
      }
    });
  }

  it('has one program of each name, and no module that none of them imports', () => {
    const programs = programsOf(everything);
    const names = programs.map(({ name }) => name);
    assert.deepEqual([...new Set(names)], names);
    const modules = programs.filter(({ prints }) => prints === undefined);
    const unused = modules.filter(({ name }) => !everything.includes(`from './${name}'`));
    assert.deepEqual(unused, []);
  });
});

/** What a program has printed, with the addresses as the page has them. */
function asPrinted(output: string): string {
  return output.replaceAll(OWN, '127.0.0.');
}
