import assert from 'node:assert/strict';

import { isReplyTo, messageOf, replyTo } from '../../../../samples/udaddy/protocol.js';

describe('udaddy protocol', () => {
  it('replies with the buffer from its beginning: 40 bytes, then the message, cut', () => {
    const message = messageOf(3, 100);
    assert.equal(message[1], 94);
    const reply = replyTo(message);
    assert.equal(reply.length, 100);
    assert.deepEqual(reply.subarray(40), message.subarray(0, 60));
    assert.ok(isReplyTo(message, reply));
    assert.ok(!isReplyTo(messageOf(4, 100), reply));
    assert.ok(!isReplyTo(message, reply.subarray(1)));
  });

  it('has nothing of a message in the reply to one that the GRH area covers', () => {
    for (const sizeBytes of [1, 40]) {
      const message = messageOf(1, sizeBytes);
      assert.deepEqual(replyTo(message), new Uint8Array(sizeBytes));
      assert.ok(isReplyTo(message, replyTo(message)));
    }
  });
});
