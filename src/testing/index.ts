/**
 * Tests from the graph of any XState v5 machine: paths that take every transition, rules that hold in every reachable
 * state, and a replay of the paths on the live machine.
 */
export { agentAlphabet } from './agent/alphabet.js'
export { agentInvariants } from './agent/invariants/index.js'
export { agentInputs } from './agent/inputs.js'
export { historyProblem } from './agent/history.js'
export { type AgentSpace, agentSpace, type AgentSpaceOptions } from './agent/space.js'
export { agentStateKey } from './agent/state-key.js'
export { coverPaths, type Cover, type CoverOptions } from './cover-paths.js'
export type { Coverage } from './coverage.js'
export { emitJest, type EmitJestOptions } from './emit-jest.js'
export { PathError, type PathErrorCode } from './errors.js'
export {
  checkInvariants,
  type Arrival,
  type Counterexample,
  type Invariant,
  type InvariantReport,
} from './invariants.js'
export { machineHarness } from './machine-harness.js'
export type { MachineAction } from '../core/chart/observe.js'
export { playSession, type PlayedSession, type PlayOptions } from './play/play-session.js'
export {
  type DifferenceKind,
  PlayError,
  type PlayErrorCode,
  type SessionDifference,
} from './play/play-error.js'
export { recordedAgent } from './play/recorded-agent.js'
export { recordSession } from './play/record-session.js'
export type { RecordedAgent, RecordedEntry, RecordedTool, Recording } from './play/recording.js'
export { printPath, type MachinePath, type PathStep } from './path.js'
export { anyState, canReach, isFinal, type Reach, type Where } from './reach.js'
export {
  checkProvider,
  type CheckProviderOptions,
  type ProviderCheck,
  type ProviderReport,
  providerTable,
} from './provider/check-provider.js'
export type { ProviderServer, ProviderTurn, ServedMessage, ServedRequest } from './provider/server.js'
export {
  checkStore,
  type CheckStoreOptions,
  type StoreCheck,
  type StorePlace,
  type StoreReport,
} from './store/check-store.js'
export {
  replay,
  type ReplayClock,
  type ReplayHarness,
  type ReplayOptions,
  type ReplayPath,
  type ReplayResult,
  type RestingState,
} from './replay.js'
export {
  replayGuards,
  replaySteps,
  type GuardReplay,
  type RecordedCall,
  type RecordedStep,
  type RecordedTools,
  type ReplayedFinding,
} from './replay-guards.js'
export { coverageTable } from './report.js'
export { doneActor, errorActor, type ExploreOptions, type Labelled, type ExploreProgress } from './space.js'
export type { DeclaredTransition } from '../core/chart/transitions.js'
export type { Uncovered } from './uncovered.js'
