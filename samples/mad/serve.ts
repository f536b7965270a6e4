/** Answers what is asked about this machine, until it is interrupted. */
import { readdir } from 'node:fs/promises';
import { arch, cpus, hostname, platform, totalmem } from 'node:os';
import { type Ia, MadMethod, MadStatus, type ManagementRequest } from 'dapl';

import { Attribute, DIRECTORY, MAX_TEXT_BYTES, toBytes, toText } from './protocol.js';

/** Resolves when the adapter is closed. */
export async function serve(ia: Ia): Promise<void> {
  const agent = ia.mad.registerAgent({ ...DIRECTORY, methods: [MadMethod.GET] });
  console.log(`serving on ${ia.address}`);
  await new Promise<void>((ended) => {
    agent.requests$.subscribe({ next: (request) => void answer(request), complete: ended });
  });
}

async function answer(request: ManagementRequest): Promise<void> {
  const text = await answerTo(request);
  try {
    if (text === undefined) await request.respond({ status: MadStatus.INVALID_ATTRIBUTE_VALUE });
    else await request.respond({ data: toBytes(text) });
  } catch (error) {
    console.error(`${request.address} did not get its answer: ${String(error)}`);
  }
}

async function answerTo(request: ManagementRequest): Promise<string | undefined> {
  const { attributeId, attributeModifier, data } = request;
  if (attributeId === Attribute.SUMMARY) return summary();
  if (attributeId === Attribute.LISTING) return listing(toText(data));
  if (attributeId === Attribute.TEXT && attributeModifier <= MAX_TEXT_BYTES) {
    return 'All that goes around comes around. '
      .repeat(Math.ceil(attributeModifier / 35))
      .slice(0, attributeModifier);
  }
  return undefined;
}

function summary(): string {
  const memory = `${Math.round(totalmem() / 2 ** 20)} MiB`;
  return `${hostname()}: ${platform()} on ${cpus().length} x ${arch()}, ${memory}`;
}

async function listing(path: string): Promise<string | undefined> {
  try {
    return (await readdir(path)).sort().join('\n');
  } catch {
    return undefined;
  }
}
