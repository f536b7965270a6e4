/** Asks a machine about itself. */
import { type Ia, MadStatus, nameOf } from 'dapl';

import { Attribute, DIRECTORY, toText } from './protocol.js';

/** The question, and the machine to ask. */
export interface Query {
  readonly address: string;
  readonly what: 'summary' | 'listing' | 'text';
  /** The length of a text. */
  readonly bytes: number;
  readonly timeoutMs: number;
}

/** Returns the answer. @throws Error in a sentence */
export async function query(ia: Ia, asked: Query): Promise<string> {
  const { address, what, timeoutMs } = asked;
  const agent = ia.mad.registerAgent(DIRECTORY);
  const response = await agent.request({ address, timeoutMs, ...attributeOf(asked) });
  if (response.status !== MadStatus.OK) {
    const status = nameOf(MadStatus, response.status);
    throw new Error(`${address} does not say its ${what}: ${status}`);
  }
  return toText(response.data);
}

function attributeOf({ what, bytes }: Query): { attributeId: number; attributeModifier?: number } {
  if (what === 'summary') return { attributeId: Attribute.SUMMARY };
  if (what === 'listing') return { attributeId: Attribute.LISTING };
  return { attributeId: Attribute.TEXT, attributeModifier: bytes };
}
