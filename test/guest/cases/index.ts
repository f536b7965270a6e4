import type { Lab } from '../lab.js';
import type { Case } from '../suite.js';
import { badLinkCases } from './bad-link.js';
import { daplFaultCases } from './dapl-faults.js';
import { cmCornerCases } from './cm-corners.js';
import { connectionCases } from './connections.js';
import { dapltestCases } from './dapltest.js';
import { differentialCases } from './differential.js';
import { dtestCases } from './dtest.js';
import { faultCases } from './faults.js';
import { iserInitiatorCases } from './iser-initiator.js';
import { iserSuiteCases } from './iser-suite.js';
import { iserTargetCases } from './iser-target.js';
import { labCases } from './lab.js';
import { leftoverCases } from './leftovers.js';
import { lostMessageCases } from './lost-messages.js';
import { lostPathCases } from './lost-paths.js';
import { madCases, madRemovalCase } from './mad.js';
import { operationsCases } from './operations.js';
import { outageCases } from './outages.js';
import { packetPortCases } from './packet-port.js';
import { perftestCases } from './perftest.js';
import { refusalCases } from './refusals.js';
import { rsocketPreloadCases } from './rsocket-preload.js';
import { rsocketProgramCases } from './rsocket-programs.js';
import { endedBySignalCase, kernelToKernelCases, lossyCases, rpingCases } from './rping.js';
import { sharedAddressCases } from './shared-address.js';
import { softroceMulticastCases } from './softroce-multicast.js';
import { ucmatoseCases } from './ucmatose.js';
import { udaddyCases } from './udaddy.js';
import { verbsAppCases } from './verbs-apps.js';
import { verbsConformanceCases } from './verbs-conformance.js';
import { verbsDeviceCases } from './verbs-device.js';
import { verbsLifeCases } from './verbs-life.js';
import { verbsMulticastCases } from './verbs-multicast.js';
import { verbsPeerCases } from './verbs-peers.js';
import { verbsSoftroceCases } from './verbs-softroce.js';
import { verbsCases } from './verbs.js';

/** Every case of both sizes, in the order in which they run. */
export function allCases(lab: Lab, version: string): Case[] {
  return [
    ...labCases(lab),
    ...leftoverCases(lab),
    ...packetPortCases(lab, version),
    ...kernelToKernelCases(lab, version),
    ...rpingCases(lab, version),
    endedBySignalCase(lab, version),
    ...lossyCases(lab, version),
    ...ucmatoseCases(lab, version),
    ...udaddyCases(lab, version),
    ...softroceMulticastCases(lab, version),
    ...dapltestCases(lab, version),
    ...dtestCases(lab, version),
    ...perftestCases(lab, version),
    ...daplFaultCases(lab, version),
    ...iserTargetCases(lab, version),
    ...iserSuiteCases(lab, version),
    ...iserInitiatorCases(lab, version),
    ...refusalCases(lab, version),
    ...rsocketProgramCases(lab, version),
    ...rsocketPreloadCases(lab, version),
    ...operationsCases(lab, version),
    ...verbsCases(lab, version),
    ...verbsDeviceCases(lab, version),
    ...verbsAppCases(lab, version),
    ...verbsPeerCases(lab, version),
    ...verbsSoftroceCases(lab, version),
    ...verbsConformanceCases(lab, version),
    ...verbsLifeCases(lab, version),
    ...verbsMulticastCases(lab, version),
    ...differentialCases(lab, version),
    ...madCases(lab, version),
    ...lostMessageCases(lab, version),
    ...lostPathCases(lab, version),
    ...cmCornerCases(lab, version),
    ...connectionCases(lab, version),
    ...sharedAddressCases(lab, version),
    ...faultCases(lab, version),
    ...outageCases(lab, version),
    ...badLinkCases(lab, version),
    madRemovalCase(lab),
  ];
}
