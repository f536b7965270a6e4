/** `dapl/ulp/iser`: disks over iSER and iSCSI. See docs/iser.md. */
export {
  type ChapAccount,
  ISCSI_PORT,
  IscsiTarget,
  type IscsiTargetOptions,
  type Portal,
} from './target.js';
export * from '../block/index.js';
export * from './initiator/index.js';
