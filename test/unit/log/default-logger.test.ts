/** DAPL_LOG: logging without code. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { DatError } from '../../../core/index.js';
import { defaultLogger } from '../../../plugins/node/log/default-logger.js';
import { lineOf } from '../../../plugins/node/log/winston.js';
import { silentLogger } from '../../../core/spi/index.js';

const dist = join(import.meta.dirname, '../../..');
const at = (path: string): string => JSON.stringify(join(dist, path));

/** Opens an adapter, and makes an object. */
function run(env: Readonly<Record<string, string>>, options = '{}'): string {
  const script = `
    const { openIa, createLogger } = await import(${at('plugins/node/index.js')});
    const { Fabric, mock } = await import(${at('providers/mock/index.js')});
    const fabric = new Fabric({ seed: 1, autoRun: true });
    try {
      const ia = await openIa(mock({ fabric, address: '192.0.2.1' }), ${options});
      ia.createPz();
      await ia.close();
    } catch ({ message }) {
      console.error(message);
    }`;
  const { stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', script], {
    encoding: 'utf8',
    env: { ...process.env, DAPL_LOG: '', ...env },
  });
  return stderr;
}

describe('DAPL_LOG', function () {
  this.timeout(60_000);

  it('is silence without it', () => {
    assert.equal(defaultLogger(undefined), silentLogger);
    assert.equal(defaultLogger(''), silentLogger);
    assert.equal(run({}), '');
  });

  it('is one logger for each level', () => {
    for (const level of ['error', 'warn', 'info', 'debug']) {
      const logger = defaultLogger(level);
      assert.equal(logger.isDebugEnabled(), level === 'debug');
      assert.equal(defaultLogger(level), logger);
    }
  });

  it('is named where it is no level, on one line', () => {
    const name = 'the environment variable DAPL_LOG';
    for (const [level, shown] of [
      ['verbose', '"verbose"'],
      ['DEBUG', '"DEBUG"'],
      ['a\nb', '"a\\\\nb"'],
    ]) {
      assert.throws(
        () => defaultLogger(level),
        (error) => {
          assert.ok(DatError.isDatError(error));
          assert.equal(error.code, 'DAT_INVALID_PARAMETER');
          assert.match(
            error.message,
            new RegExp(`^openIa: ${name} is ${shown}; it must be one of`),
          );
          return true;
        },
      );
    }
    assert.match(run({ DAPL_LOG: 'verbose' }), /^openIa: .* DAPL_LOG is "verbose"; .* "debug" \[/);
  });

  it('traces an adapter that is opened without a logger, and leaves others alone', () => {
    assert.match(run({ DAPL_LOG: 'debug' }), /^\S+ debug ia\.createPz\(ia=\d+\)$/m);
    assert.equal(run({ DAPL_LOG: 'debug' }, "{ logger: createLogger({ level: 'error' }) }"), '');
  });

  it('writes what was logged right before an exit, once, and nothing below its level', () => {
    const script = `
      const { createLogger } = await import(${at('plugins/node/index.js')});
      const loggers = Array.from({ length: 20 }, () => createLogger({ level: 'warn' }));
      loggers[0].child({ n: 1 }).warn('first', { x: 2 });
      loggers[1].info('not wanted');
      process.exit();`;
    const { stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', script], {
      encoding: 'utf8',
    });
    assert.match(stderr, /^\S+Z warn first \{"n":1,"x":2\}\n$/);
  });

  it('is not loaded by an import of dapl', () => {
    const script = `
      import { createRequire } from 'node:module';
      await import(${at('plugins/easy/index.js')});
      const loaded = Object.keys(createRequire(import.meta.url).cache);
      console.error(loaded.filter((path) => path.includes('/winston/')).length);`;
    const { stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', script], {
      encoding: 'utf8',
    });
    assert.equal(stderr, '0\n');
  });
});

describe('a line of the log', () => {
  it('has time, level, message and fields, errors and big integers among them', () => {
    const line = lineOf({
      timestamp: 'now',
      level: 'warn',
      message: 'a\n\x1b[2J',
      error: new TypeError('no'),
      address: 5n,
      '\x9b': 1,
    });
    const fields = '{"error":"TypeError: no","address":"5n","\\u009b":1}';
    assert.equal(line, `now warn a\\u000a\\u001b[2J ${fields}`);
    assert.equal(lineOf({ timestamp: 'now', level: 'info', message: 'm' }), 'now info m');
  });
});
