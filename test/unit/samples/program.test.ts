import assert from 'node:assert/strict';
import { openIa } from 'dapl';
import { connect, FlowError } from 'dapl/flow';
import { Fabric, mock } from 'dapl/providers/mock';
import { sentenceOf } from '../../../samples/program.js';

describe('what a sample says of a failure', () => {
  it('is what has happened, without the call and the code', () => {
    const about = { operation: 'conn.send', message: 'the peer has ended the connection' };
    const ended = new FlowError('DAT_CONN_ENDED', { ...about, cause: new Error('why') });
    assert.equal(sentenceOf(ended), about.message);
    assert.equal(sentenceOf(new Error('a.b: plain [x]')), 'a.b: plain [x]');
    assert.equal(sentenceOf('text'), 'text');
  });

  it('is the sentence of DAT where DAT has refused a call beneath', async () => {
    const ia = await openIa(mock({ fabric: new Fabric({ seed: 1 }), address: '192.0.2.1' }));
    try {
      const refused = connect(ia, { address: 'there', port: 1 });
      const error: unknown = await refused.catch((thrown: unknown) => thrown);
      assert.match(sentenceOf(error), /^"there" is not an IP address .*[^\]]$/);
    } finally {
      await ia.close();
    }
  });
});
