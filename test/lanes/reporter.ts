/**
 * For mocha's `--require`: the reporter `room`. It prints nothing, and reports each file and the
 * failures to the process that started this one.
 */
import Mocha from 'mocha';
import type { Failure, Report } from './messages.js';

interface Compared {
  readonly actual?: unknown;
  readonly expected?: unknown;
}

function send(report: Report): void {
  process.send?.(report);
}

function failureOf(test: Mocha.Test): Failure {
  const error = (test.err ?? new Error('no error')) as Error & Compared;
  const { actual, expected } = error;
  // The base class has turned both into texts when they differ in a way worth showing.
  const compared =
    typeof actual === 'string' && typeof expected === 'string' ? { actual, expected } : {};
  return {
    titlePath: test.titlePath(),
    message: error.message,
    stack: error.stack ?? '',
    ...compared,
  };
}

class RoomReporter extends Mocha.reporters.Base {
  private file = '';
  private startMs = 0;
  private passed = 0;
  private failed = 0;
  private skipped = 0;

  constructor(runner: Mocha.Runner, options?: Mocha.MochaOptions) {
    super(runner, options);
    runner.on('suite', (suite) => {
      if (suite.parent?.root && suite.file !== undefined) this.enter(suite.file);
    });
    runner.on('pass', () => this.passed++);
    runner.on('fail', () => this.failed++);
    runner.on('pending', () => this.skipped++);
    runner.once('end', () => {
      this.leave();
      send({ kind: 'end', failures: this.failures.map(failureOf) });
    });
  }

  private enter(file: string): void {
    if (file === this.file) return;
    this.leave();
    this.file = file;
    this.startMs = performance.now();
  }

  private leave(): void {
    const { file, passed, failed, skipped } = this;
    if (file === '' && failed === 0) return;
    const milliseconds = performance.now() - this.startMs;
    send({ kind: 'file', file, passed, failed, skipped, milliseconds });
    this.file = '';
    this.passed = this.failed = this.skipped = 0;
  }
}

Object.assign(Mocha.reporters, { room: RoomReporter });
