/** The script as two of our HCAs play it, on a network whose time is simulated. */
import { parseBth } from '../roce.js';
import { openEnds } from '../verbs/manual-pair.js';
import { openMockEnds } from '../verbs/mock-ends.js';
import type { Acknowledgement, Played } from './compare.js';
import { playScript } from './play.js';
import type { Script } from './script.js';

export async function playReference(script: Script): Promise<Played> {
  const acknowledgements: Acknowledgement[] = [];
  const mock = openMockEnds(script.seed, (event, packet) => {
    if (event !== 'sent') return;
    const bth = parseBth(Buffer.from(packet.buffer.buffer, packet.buffer.byteOffset, 32));
    if (bth.syndrome !== undefined) acknowledgements.push(bth);
  });
  try {
    const ends = await openEnds(mock.requester, mock.responder);
    const records = await playScript(ends, script);
    return { asks: 'hca', answers: 'hca', records, acknowledgements };
  } finally {
    await mock.close();
  }
}
