/**
 * The review of August 2005 (openib-general, "evd upcall policy implementation"), point by point:
 * the work of a kDAPL consumer, in words, beside the stream that does it. The numbers are those of
 * docs/discussions.md.
 */
import type { DatError } from 'dapl';
import { receives, upcalls } from 'dapl/rx';
import {
  BehaviorSubject,
  defer,
  filter,
  firstValueFrom,
  lastValueFrom,
  map,
  repeat,
  Subject,
  take,
  tap,
  toArray,
} from 'rxjs';
import { aWhile, numberOf, type Traffic } from './traffic.js';

/** One point of the review. */
export interface Point {
  readonly questions: readonly string[];
  readonly title: string;
  /** The work that a consumer of kDAPL had to do. */
  readonly then: string;
  /** The same with streams. @returns the outcome, which is the same on every provider */
  readonly now: (traffic: Traffic) => Promise<string>;
}

const ONE = { policy: 'ONE' } as const;

export const POINTS: readonly Point[] = [
  {
    questions: ['2.1'],
    title: 'One upcall at a time',
    then:
      'trust a flag and a spin lock in the provider; and return at once, for an upcall could not ' +
      'sleep: what took longer went to a queue and a thread of your own.',
    now: async (traffic: Traffic): Promise<string> => {
      let inside = 0;
      let most = 0;
      const numbers$ = upcalls(traffic.evd, ONE, async (event) => {
        most = Math.max(most, ++inside);
        await aWhile();
        inside--;
        return numberOf(event);
      });
      const numbers = lastValueFrom(numbers$.pipe(take(4), toArray()));
      await traffic.arrive(4);
      return `${String(await numbers)}: ${most} at a time`;
    },
  },
  {
    questions: ['2.2'],
    title: 'Many upcalls at a time',
    then:
      'do without: the function that made upcalls could not be entered twice, so ' +
      'DAT_UPCALL_MANY was not there, and a pool of threads had to be fed by hand.',
    now: async (traffic: Traffic): Promise<string> => {
      await traffic.arrive(8);
      const begun: number[] = [];
      const gate = new Subject<void>();
      const subscription = upcalls(traffic.evd, { policy: 'MANY', limit: 3 }, async (event) => {
        begun.push(numberOf(event));
        await firstValueFrom(gate);
      }).subscribe();
      await aWhile();
      const stalled = `${String(begun)} in progress, ${traffic.waiting} wait in the dispatcher`;
      subscription.unsubscribe();
      gate.next();
      return stalled;
    },
  },
  {
    questions: ['2.3', '2.14'],
    title: 'No upcall after the end',
    then:
      'disable upcalls, and then find out whether one was still running on another processor ' +
      'before its memory could go: DAT_UPCALL_TEARDOWN was not defined further.',
    now: async (traffic: Traffic): Promise<string> => {
      await traffic.arrive(3);
      const log: string[] = [];
      const all$ = upcalls(traffic.evd, ONE, async () => {
        log.push('begins');
        await aWhile();
        log.push('ends');
      });
      const subscription = all$.subscribe();
      await aWhile();
      subscription.unsubscribe();
      await all$.torndown;
      log.push('torndown');
      await aWhile();
      return `${log.join(', ')}; ${traffic.waiting} wait`;
    },
  },
  {
    questions: ['2.4', '2.5', '2.6'],
    title: 'Dequeueing in an upcall',
    then:
      'take care: dapl_evd_dequeue could call the upcall again inside the upcall, for an event ' +
      'that it made itself, and a lock there would have waited for its own holder.',
    now: async (traffic: Traffic): Promise<string> => {
      await traffic.arrive(4);
      let depth = 0;
      let deepest = 0;
      const all$ = upcalls(traffic.evd, { policy: 'NOTIFY' }, () => {
        deepest = Math.max(deepest, ++depth);
        const numbers = traffic.drain();
        depth--;
        return numbers;
      });
      return `${String(await firstValueFrom(all$))} in one call, ${deepest} deep`;
    },
  },
  {
    questions: ['2.7'],
    title: 'What becomes of DAT_CONNECTION_EVENT_BROKEN',
    then:
      'hope that the failed completion was dequeued, since that was where BROKEN was made; then ' +
      'it was taken out, and a consumer had to guess from the status of a completion.',
    now: async (traffic: Traffic): Promise<string> => {
      const { sender, receiver } = traffic;
      const broken = firstValueFrom(sender.connection$.pipe(take(2), toArray()));
      const messages = lastValueFrom(receives(sender).pipe(toArray()));
      // Memory of the receiver that was never granted.
      const outbox = sender.ia.allocate(1, { pz: sender.pz });
      sender.postRdmaWrite(outbox.segment(), 0, { address: 0n, rmrContext: 0 });
      const [, event] = await broken;
      const left = (await messages).length;
      await aWhile();
      return `${event?.cause} once; the messages complete, ${left} more; ${receiver.state}`;
    },
  },
  {
    questions: ['2.8', '2.9'],
    title: 'What completes between the upcall and the next arm',
    then:
      'live with it: a completion between the return of the upcall and ib_req_notify_cq had no ' +
      'upcall, until another one came; so poll now and then, to be sure.',
    now: async (traffic: Traffic): Promise<string> => {
      const numbers$ = upcalls(traffic.evd, ONE, async (event) => {
        // The next one, which is the last, arrives while this upcall is in progress.
        if (numberOf(event) === 0) await traffic.arrive(1);
        return numberOf(event);
      });
      const numbers = lastValueFrom(numbers$.pipe(take(2), toArray()));
      await traffic.arrive(1);
      return `${String(await numbers)}, without another stimulus`;
    },
  },
  {
    questions: ['2.10', '2.11'],
    title: 'Notifications that nothing wants',
    then:
      'pay for an interrupt with each completion, also while polling; and drop by hand the ' +
      'upcall of a queue that was armed before upcalls were disabled.',
    now: async (traffic: Traffic): Promise<string> => {
      const paused$ = new BehaviorSubject(false);
      const taken: number[] = [];
      const handler = (event: Parameters<typeof numberOf>[0]): unknown =>
        taken.push(numberOf(event));
      const subscription = upcalls(traffic.evd, { ...ONE, paused$ }, handler).subscribe();
      paused$.next(true);
      await traffic.arrive(3);
      await aWhile();
      const polled = traffic.drain();
      subscription.unsubscribe();
      return `paused, ${taken.length} upcalls; dequeued ${String(polled)}`;
    },
  },
  {
    questions: ['2.12'],
    title: 'Upcalls stay on, notifications fire once',
    then: 'know which of the two a layer below had, and arm again, or not, after each upcall.',
    now: async (traffic: Traffic): Promise<string> => {
      const numbers$ = upcalls(traffic.evd, ONE, numberOf);
      const numbers = lastValueFrom(numbers$.pipe(take(6), toArray()));
      for (let burst = 0; burst < 3; burst++) {
        await traffic.arrive(2);
        await aWhile();
      }
      return `${String(await numbers)} in three bursts`;
    },
  },
  {
    questions: ['2.13'],
    title: 'What fails where no call of the consumer would hear of it',
    then:
      'create an asynchronous dispatcher, and a handler for it, and find the object of each ' +
      'error in a table of handles.',
    now: async (traffic: Traffic): Promise<string> => {
      const { receiver } = traffic.adapters;
      const errors$ = receiver.async$.pipe(filter((event) => event.type === 'async-error'));
      const mine$ = errors$.pipe(filter(({ object }) => object === traffic.evd));
      const error = firstValueFrom(mine$);
      const numbers$ = upcalls(traffic.evd, ONE, (message) => {
        if (numberOf(message) === 0) throw new Error('the handler of message 0');
        return numberOf(message);
      });
      const next = firstValueFrom(numbers$);
      await traffic.arrive(2);
      const { cause } = await error;
      return `${(cause as Error).message}; then ${await next}`;
    },
  },
  {
    questions: ['2.15', '2.16', '2.17'],
    title: 'When upcalls may be enabled, and the handler changed',
    then:
      'have the handler before the dispatcher, since upcalls were on from the start; and disable ' +
      'them for each change, which cost a second call and left a gap.',
    now: async (traffic: Traffic): Promise<string> => {
      await traffic.arrive(4);
      const begin = `${traffic.waiting} wait`;
      const odd$ = upcalls(traffic.evd, ONE, (event) => `first ${numberOf(event)}`).pipe(take(1));
      const even$ = upcalls(traffic.evd, ONE, (event) => `second ${numberOf(event)}`).pipe(take(1));
      const all: string[] = [];
      for (const each$ of [odd$, even$, odd$, even$]) all.push(await firstValueFrom(each$));
      return `${begin}; ${all.join(', ')}`;
    },
  },
  {
    questions: ['2.18', '2.19', '2.20', '2.21'],
    title: 'Enabling while events wait (what iSER needed)',
    then:
      'disable upcalls in the upcall, drain in a thread of your own, enable again; and begin ' +
      'anew when that failed since events waited: if the count did not miss some, as it did.',
    now: async (traffic: Traffic): Promise<string> => {
      const paused$ = new BehaviorSubject(false);
      const numbers: number[] = [];
      let refusals = 0;
      /**
       * The consumer's own context: takes all pending events, until upcalls can be enabled again.
       */
      const drain = (error?: DatError): void => {
        if (error !== undefined) refusals++;
        numbers.push(...traffic.drain());
        paused$.next(false);
      };
      const how = { ...ONE, paused$, pending: 'refuse', refused: drain } as const;
      const subscription = upcalls(traffic.evd, how, (event) => {
        numbers.push(numberOf(event));
        paused$.next(true);
      }).subscribe();
      await traffic.arrive(1);
      await aWhile();
      await traffic.arrive(5);
      // Upcalls are off: all events wait, and enabling is refused until they are taken.
      paused$.next(false);
      await aWhile();
      subscription.unsubscribe();
      return `${String(numbers)}; refused ${refusals} time`;
    },
  },
  {
    questions: ['2.18'],
    title: 'One upcall, then the rest by hand',
    then:
      'write that loop in each program: an upcall with the policy disabled behind it, then ' +
      'dequeue until the queue is empty, then enable.',
    now: async (traffic: Traffic): Promise<string> => {
      const batch$ = defer(() =>
        upcalls(traffic.evd, ONE, (event) => [numberOf(event)]).pipe(
          take(1),
          map((first) => [...first, ...traffic.drain()]),
        ),
      );
      const sizes: number[] = [];
      const two = lastValueFrom(
        batch$.pipe(
          tap((batch) => sizes.push(batch.length)),
          repeat(2),
        ),
      );
      await traffic.arrive(1);
      while (sizes.length === 0) await aWhile();
      await traffic.arrive(1);
      await two;
      return `${sizes.length} batches, ${String(sizes)} events`;
    },
  },
  {
    questions: ['2.22', '2.23'],
    title: 'What a trace of calls looks like',
    then: 'know the code: "dapl_evd_modify_upcall: (evd=dbbe4e58) set to 2".',
    now: async (traffic: Traffic): Promise<string> => {
      const { trace } = traffic.adapters;
      const from = trace.length;
      upcalls(traffic.evd, ONE, numberOf).subscribe().unsubscribe();
      const calls = trace.slice(from).filter((line) => line.startsWith('evd.modifyUpcall'));
      return calls
        .map((line) => line.replace(/evd=\d+/, 'evd=7').replace(/, handler=.*/, ''))
        .join(' ');
    },
  },
];
