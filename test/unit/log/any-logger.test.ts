/** Loggers that are given to `openIa`: whole ones, `console` and its like, and what is none. */
import assert from 'node:assert/strict';
import { createLogger, DatError, openIa } from '../../../plugins/node/index.js';
import { loggerOf } from '../../../core/registry/any-logger.js';
import { silentLogger } from '../../../core/spi/index.js';
import { Fabric, mock } from '../../../providers/mock/index.js';

type Line = readonly unknown[];

/** Notes what a console would print. */
function listening(more: object = {}) {
  const lines: Line[] = [];
  const log =
    (level: string) =>
    (...values: unknown[]): void =>
      void lines.push([level, ...values]);
  const [debug, info, warn, error] = ['debug', 'info', 'warn', 'error'].map(log);
  return { lines, logger: { debug: debug!, info: info!, warn: warn!, error: error!, ...more } };
}

describe('a logger', () => {
  it('that has all is taken as it is', () => {
    assert.equal(loggerOf(silentLogger), silentLogger);
  });

  it('such as console gets the levels, and the fields of children', () => {
    const { lines, logger } = listening();
    const whole = loggerOf(logger);
    whole.info('a');
    whole.warn('b', { x: 1 });
    const child = whole.child({ device: 'd' }).child({ module: 'm' });
    child.error('c', { x: 2 });
    child.info('d');
    child.debug('not wanted');
    assert.equal(child.isDebugEnabled(), false);
    assert.deepEqual(lines, [
      ['info', 'a'],
      ['warn', 'b', { x: 1 }],
      ['error', 'c', { device: 'd', module: 'm', x: 2 }],
      ['info', 'd', { device: 'd', module: 'm' }],
    ]);
  });

  it('logs at debug if it says so', () => {
    const { lines, logger } = listening({ isDebugEnabled: () => true });
    const whole = loggerOf(logger).child({ n: 1 });
    assert.equal(whole.isDebugEnabled(), true);
    whole.debug('a');
    assert.deepEqual(lines, [['debug', 'a', { n: 1 }]]);
  });

  it('of that kind opens an adapter, and hears of it', async () => {
    const { lines, logger } = listening({ isDebugEnabled: () => true });
    const provider = mock({ fabric: new Fabric({ autoRun: true }), address: '10.0.0.1' });
    const ia = await openIa(provider, { logger });
    ia.createPz().free();
    await ia.close();
    assert.ok(
      lines.some(([level, text]) => level === 'debug' && String(text).includes('createPz')),
    );
    await (await openIa(provider, { logger: console })).close();
  });

  it('that lacks a level is refused, and nothing is opened', async () => {
    const fabric = new Fabric({ autoRun: true });
    const { logger } = listening();
    for (const given of [{ ...logger, warn: 1 }, {}, null, 'console', () => undefined]) {
      const opening = openIa(mock({ fabric, address: '10.0.0.1' }), { logger: given as never });
      await assert.rejects(opening, (error) => {
        assert.ok(DatError.isDatError(error), String(error));
        assert.equal(error.subtype, 'DAT_INVALID_ARG2');
        assert.match(
          error.message,
          /^openIa: logger is .* with the functions debug, info, warn, err/,
        );
        return true;
      });
    }
    assert.equal(fabric.node('10.0.0.1'), undefined);
  });

  it('of dapl has a level that there is', () => {
    const text = /^DatError: createLogger: level is "verbos"; it must be one of "error", "warn",/;
    assert.throws(() => createLogger({ level: 'verbos' as never }), text);
  });
});
