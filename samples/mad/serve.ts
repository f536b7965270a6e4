/** Answers requests about this machine, until it is interrupted. */
import { readdir } from 'node:fs/promises';
import { arch, cpus, hostname, platform, totalmem } from 'node:os';
import { type Ia, MadMethod, MadStatus, type ManagementRequest } from 'dapl';
import { lastValueFrom, mergeMap } from 'rxjs';

import { Attribute, DIRECTORY, MAX_TEXT_BYTES, toBytes } from './protocol.js';

/** Number of answers in flight; each may have a megabyte. Further requests wait. */
const ANSWERS_AT_A_TIME = 16;

/**
 * Serves until the adapter is closed.
 * @param directory the directory to list: this side decides what others can see
 */
export async function serve(ia: Ia, directory?: string): Promise<void> {
  const agent = ia.mad.registerAgent({ ...DIRECTORY, methods: [MadMethod.GET] });
  console.log(`serving on ${ia.address}`);
  const answers$ = agent.requests$.pipe(
    mergeMap((request) => answer(request, directory), ANSWERS_AT_A_TIME),
  );
  await lastValueFrom(answers$, { defaultValue: undefined });
}

async function answer(request: ManagementRequest, directory?: string): Promise<void> {
  const text = await answerTo(request, directory);
  try {
    if (text === undefined) await request.respond({ status: MadStatus.INVALID_ATTRIBUTE_VALUE });
    else await request.respond({ data: toBytes(text) });
  } catch (error) {
    console.error(`${request.address} did not get its answer: ${String(error)}`);
  }
}

async function answerTo(
  request: ManagementRequest,
  directory: string | undefined,
): Promise<string | undefined> {
  const { attributeId, attributeModifier } = request;
  if (attributeId === Attribute.SUMMARY) return summary();
  if (attributeId === Attribute.LISTING && directory !== undefined) return listing(directory);
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

async function listing(directory: string): Promise<string | undefined> {
  try {
    return (await readdir(directory)).sort().join('\n');
  } catch {
    return undefined;
  }
}
