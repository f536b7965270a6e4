/** A headless Chromium, driven by its DevTools protocol over a WebSocket. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { WebSocket } from 'ws';

const NAMES = ['chromium', 'chromium-browser', 'google-chrome'];

/** The command of a Chromium on this machine; undefined for none. */
export function chromiumCommand(): string | undefined {
  return NAMES.find((name) => spawnSync(name, ['--version']).status === 0);
}

interface Reply {
  readonly id?: number;
  readonly method?: string;
  readonly params?: Readonly<Record<string, unknown>>;
  readonly result?: unknown;
  readonly error?: { readonly message: string };
}

export class Browser {
  /** Errors of the page: exceptions, and what it logs as errors. */
  readonly errors: string[] = [];
  private sent = 0;
  private readonly waiting = new Map<number, (reply: Reply) => void>();

  private constructor(
    private readonly child: ChildProcess,
    private readonly profile: string,
    private readonly socket: WebSocket,
  ) {
    socket.on('message', (data: Buffer) => this.onMessage(JSON.parse(data.toString()) as Reply));
  }

  static async open(command: string): Promise<Browser> {
    const profile = mkdtempSync(join(tmpdir(), 'dapl-lab-'));
    const flags = ['--headless=new', '--no-sandbox', '--disable-gpu', '--hide-scrollbars'];
    const place = ['--remote-debugging-port=0', `--user-data-dir=${profile}`, 'about:blank'];
    const child = spawn(command, [...flags, ...place], { stdio: ['ignore', 'ignore', 'pipe'] });
    const url = await new Promise<string>((resolve, reject) => {
      child.once('exit', (code) => reject(new Error(`${command} has ended with ${String(code)}`)));
      createInterface(child.stderr).on('line', (line) => {
        const [, found] = /listening on (ws:\S+)/.exec(line) ?? [];
        if (found !== undefined) resolve(found);
      });
    });
    const targets = (await (
      await fetch(`${url.replace(/^ws/, 'http').replace(/\/devtools.*/, '')}/json`)
    ).json()) as readonly { readonly type: string; readonly webSocketDebuggerUrl: string }[];
    const target = targets.find(({ type }) => type === 'page')!;
    const socket = new WebSocket(target.webSocketDebuggerUrl);
    await once(socket, 'open');
    const browser = new Browser(child, profile, socket);
    for (const domain of ['Page', 'Runtime', 'Log']) await browser.call(`${domain}.enable`);
    return browser;
  }

  async call<T>(method: string, params: object = {}): Promise<T> {
    const id = ++this.sent;
    const reply = new Promise<Reply>((resolve) => this.waiting.set(id, resolve));
    this.socket.send(JSON.stringify({ id, method, params }));
    const { result, error } = await reply;
    if (error) throw new Error(`${method}: ${error.message}`);
    return result as T;
  }

  /** Loads a page and waits until it says that it is ready. */
  async go(url: string): Promise<void> {
    await this.call('Page.navigate', { url: 'about:blank' });
    await this.call('Page.navigate', { url });
    await this.until("document.body?.dataset.ready === 'true'");
  }

  /** The value of an expression, or of the promise that it gives. */
  async evaluate<T>(expression: string): Promise<T> {
    const { result, exceptionDetails } = await this.call<{
      readonly result: { readonly value: T };
      readonly exceptionDetails?: { readonly exception?: { readonly description?: string } };
    }>('Runtime.evaluate', { expression, awaitPromise: true, returnByValue: true });
    if (exceptionDetails) {
      throw new Error(exceptionDetails.exception?.description ?? 'an expression threw');
    }
    return result.value;
  }

  /** Waits until an expression is true in the page, looking at each of its frames. */
  async until(condition: string): Promise<void> {
    while (!(await this.evaluate<boolean>(`Boolean(${condition})`))) {
      await this.evaluate('new Promise((done) => setTimeout(done, 20))');
    }
  }

  async press(key: string): Promise<void> {
    const text = key.length === 1 ? { text: key } : {};
    await this.call('Input.dispatchKeyEvent', { type: 'keyDown', key, ...text });
    await this.call('Input.dispatchKeyEvent', { type: 'keyUp', key });
  }

  async resize(width: number, height: number): Promise<void> {
    const metrics = { width, height, deviceScaleFactor: 1, mobile: false };
    await this.call('Emulation.setDeviceMetricsOverride', metrics);
  }

  async screenshot(format: 'png' | 'webp' = 'png'): Promise<Buffer> {
    const { data } = await this.call<{ readonly data: string }>('Page.captureScreenshot', {
      format,
    });
    return Buffer.from(data, 'base64');
  }

  async close(): Promise<void> {
    this.socket.close();
    const ended = once(this.child, 'exit');
    this.child.kill('SIGKILL');
    await ended;
    rmSync(this.profile, { recursive: true, force: true, maxRetries: 5 });
  }

  private onMessage(reply: Reply): void {
    if (reply.id !== undefined) {
      this.waiting.get(reply.id)?.(reply);
      this.waiting.delete(reply.id);
    } else if (reply.method === 'Runtime.exceptionThrown') this.errors.push(textOf(reply.params));
    else if (reply.method === 'Log.entryAdded' || reply.method === 'Runtime.consoleAPICalled') {
      const text = textOf(reply.params);
      if (/"(?:level|type)":"error"/.test(text)) this.errors.push(text);
    }
  }
}

function textOf(params: unknown): string {
  return JSON.stringify(params);
}
