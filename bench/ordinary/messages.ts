/** Peers of Node with messages of their own: WebSocket, and the channel to a child process. */
import { type ChildProcess, fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { Messenger, Messengers } from '../front/messenger-end.js';
import { Inbox, type Job, type Link, type Program } from './link.js';
import type { Usage } from './usage.js';

const WORKER = fileURLToPath(new URL('worker.js', import.meta.url));

export class MessengerProgram implements Program {
  constructor(
    private readonly messengers: Messengers,
    private readonly local: string,
    private readonly remote: string,
  ) {}

  listen(_job: Job, take: (link: Link) => void): Promise<number> {
    return this.messengers.listen(this.local, (messenger) => take(linkOf(messenger)));
  }

  async connect(_job: Job, port: number): Promise<Link> {
    return linkOf(await this.messengers.connect(this.remote, port));
  }

  close(): Promise<void> {
    this.messengers.unlisten();
    return Promise.resolve();
  }
}

function linkOf(messenger: Messenger): Link {
  const inbox = new Inbox();
  messenger.onMessage((message) => inbox.push(message));
  messenger.onError(() => inbox.end());
  return {
    send: async (message) => messenger.send(message),
    receive: () => inbox.receive(),
    close: async () => messenger.close(),
  };
}

/** Either side of a channel between processes; what is not bytes is about the benchmark. */
export function ipcLink(channel: ChildProcess | NodeJS.Process): Link {
  const inbox = new Inbox();
  channel.on('message', (message: unknown) => {
    if (message instanceof Uint8Array) inbox.push(message);
  });
  channel.on('disconnect', () => inbox.end());
  return {
    send: (message) =>
      new Promise((resolve, reject) => {
        channel.send!(message, undefined, undefined, (error) =>
          error ? reject(error) : resolve(),
        );
      }),
    receive: () => inbox.receive(),
    close: async () => void channel.disconnect(),
  };
}

/** The client, whose server is a child of its own. */
export class IpcProgram implements Program {
  private child: ChildProcess | undefined;

  listen(): Promise<number> {
    return Promise.resolve(0);
  }

  connect(job: Job): Promise<Link> {
    this.child = fork(WORKER, ['ipc-server', JSON.stringify(job)], { serialization: 'advanced' });
    return Promise.resolve(ipcLink(this.child));
  }

  others(): Promise<Usage> {
    return new Promise((resolve) => {
      const onMessage = (message: unknown): void => {
        if (message instanceof Uint8Array) return;
        this.child!.off('message', onMessage);
        resolve(message as Usage);
      };
      this.child!.on('message', onMessage).send('usage');
    });
  }

  close(): Promise<void> {
    this.child?.kill();
    return Promise.resolve();
  }
}
