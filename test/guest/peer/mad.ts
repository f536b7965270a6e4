/**
 * Management datagrams over a real umad device, by the verbs provider.
 *
 *     serve <own ip>                answers as samples/mad does, and plain requests; until killed
 *     ask <own ip> <ip> <bytes>     prints what came of each question, one line each
 *     wait <own ip> <ip>            asks what nobody answers, and prints how that ended
 */
import { DatError, type Ia, MadMethod, openIa } from 'dapl';
import { verbs } from 'dapl/providers/verbs';

import { patience } from '../../support/patience.js';
import { query } from '../../../samples/mad/query.js';
import { serve } from '../../../samples/mad/serve.js';

/** Vendor range 1: neither OUI nor RMPP. */
const PLAIN = { managementClass: 0x0a } as const;
/** Nobody has registered it. */
const UNKNOWN_CLASS = { managementClass: 0x0b } as const;
/** A trap is no request that a kernel answers by itself. */
const TRAP = 0x05;
const TIMEOUT_MS = patience(20_000);
const LONG_MS = patience(60_000);

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

/** How it ended, in a word or two. */
async function outcome(what: string, asked: Promise<string>): Promise<void> {
  const text = await asked.catch((error: unknown) =>
    DatError.isDatError(error) ? error.code : String(error),
  );
  print(`${what}: ${text}`);
}

async function servePlain(ia: Ia): Promise<void> {
  const agent = ia.mad.registerAgent({ ...PLAIN, methods: [MadMethod.GET] });
  agent.requests$.subscribe((request) => {
    void request.respond({ data: new TextEncoder().encode('plain') });
  });
  await serve(ia);
}

async function ask(ia: Ia, address: string, bytes: number): Promise<void> {
  const question = { address, bytes, timeoutMs: TIMEOUT_MS };
  await outcome(
    'summary',
    query(ia, { ...question, what: 'summary' }).then((text) => text.split(':')[0] ?? ''),
  );
  await outcome(
    'text',
    query(ia, { ...question, what: 'text' }).then((text) => `${text.length} bytes`),
  );
  await outcome(
    'listing',
    query(ia, { ...question, what: 'listing' }).catch((error: Error) =>
      error.message.replace(/^.*: /, ''),
    ),
  );
  const plain = ia.mad.registerAgent(PLAIN);
  await outcome(
    'plain',
    plain
      .request({ address, attributeId: 1, timeoutMs: TIMEOUT_MS })
      .then(({ data }) => new TextDecoder().decode(data.subarray(0, 5))),
  );
  const stranger = ia.mad.registerAgent(UNKNOWN_CLASS);
  await outcome(
    'unknown class',
    stranger
      .request({ address, attributeId: 1, timeoutMs: TIMEOUT_MS })
      .then(({ status }) => `status ${status}`),
  );
  await outcome(
    'silence',
    stranger
      .request({ address, method: TRAP, attributeId: 1, timeoutMs: 200, retries: 1 })
      .then(() => 'answered'),
  );
}

/** With RMPP, so that it may be asked over either family. */
async function wait(ia: Ia, address: string): Promise<void> {
  const agent = ia.mad.registerAgent({ managementClass: 0x31, oui: 0x02da91, rmpp: true });
  const asked = agent.request({ address, method: TRAP, attributeId: 1, timeoutMs: LONG_MS });
  print('asking');
  await outcome(
    'wait',
    asked.then(() => 'answered'),
  );
}

const [verb = '', own = '', to = '', bytes = '0'] = process.argv.slice(2);
const ia = await openIa(verbs({ address: own }));
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => void ia.close('abrupt'));
if (verb === 'serve') await servePlain(ia);
else if (verb === 'ask') await ask(ia, to, Number(bytes));
else await wait(ia, to);
await ia.close('abrupt');
