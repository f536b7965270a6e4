/** Receives that are missing or too small. */
import { group } from '../behaviour.js';
import { connected, expectQuiet, settle } from '../peer.js';

/** 1.28 ms (IBTA table 45), to keep waits short. */
const MIN_RNR_TIMER = 14;
const FOR_EVER = 7;

export const flowControl = group('Receives', (claim) => {
  claim('no receive posted: the send waits, and succeeds when one is posted', async (pair) => {
    const transport = { minRnrTimer: MIN_RNR_TIMER, rnrRetryCount: FOR_EVER };
    const peers = await connected(pair, { attributes: { transport } });
    const { active, passive } = peers;
    active.lmr.bytes[0] = 9;
    active.ep.postSend(active.lmr.segment(0, 1), 1);
    await expectQuiet(peers);
    passive.ep.postRecv(passive.lmr.segment(), 2);
    await passive.expect('dto 2 SUCCESS');
    await active.expect('dto 1 SUCCESS');
  });

  claim('no receive posted: RECEIVER_NOT_READY when the retries are used up', async (pair) => {
    const transport = { minRnrTimer: MIN_RNR_TIMER, rnrRetryCount: 2 };
    const peers = await connected(pair, { attributes: { transport } });
    peers.active.ep.postSend([], 1);
    peers.active.ep.postSend([], 2);
    await peers.active.expect('dto 1 RECEIVER_NOT_READY', 'dto 2 FLUSHED', 'BROKEN');
    await settle(pair);
  });

  claim('a receive too small: LOCAL_LENGTH here, REMOTE_RESPONDER there, one BROKEN', async (p) => {
    const peers = await connected(p);
    const { active, passive } = peers;
    passive.lmr.bytes.fill(0xee);
    passive.ep.postRecv(passive.lmr.segment(100, 10), 1);
    passive.ep.postRecv(passive.lmr.segment(200, 10), 2);
    active.ep.postSend(active.lmr.segment(0, 11), 3);
    active.ep.postSend(active.lmr.segment(0, 1), 4);
    await passive.expect('dto 1 LOCAL_LENGTH', 'dto 2 FLUSHED', 'BROKEN');
    await active.expect('dto 3 REMOTE_RESPONDER', 'dto 4 FLUSHED', 'BROKEN');
    await expectQuiet(peers);
  });

  claim('a message that fills its receive exactly succeeds', async (pair) => {
    const { active, passive } = await connected(pair);
    passive.ep.postRecv(passive.lmr.segment(0, 5000), 1);
    active.ep.postSend(active.lmr.segment(0, 5000), 2);
    await passive.expect('dto 1 SUCCESS');
  });
});
