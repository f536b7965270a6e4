import { WrFlags } from '../../../core/spi/index.js';

/**
 * The same requests without fences, for rxe 6.1 as the requester. Its requester task, which waits
 * for a fence, and its completer task, which ends the wait, share the flag for it unsynchronized
 * (linux-rdma, June 2023): now and then the wake-up is lost, the READ in front has its answer, and
 * what is fenced behind it never leaves. And when it repeats a fenced request, for an RNR NAK or
 * because an acknowledgement was late, that waits for READs behind it, which wait for it.
 *
 * A fence is the requester's own affair: nothing on the wire tells of it, and the responder does
 * nothing else for it. So nothing of ours is left out; as the requester ours gets all of them.
 */
export function withoutFences<Asked extends { readonly flags?: number }>(
  requests: readonly Asked[],
): Asked[] {
  return requests.map((request) =>
    request.flags === undefined ? request : { ...request, flags: request.flags & ~WrFlags.FENCE },
  );
}
