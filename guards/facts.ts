import type { GuardrailsConfig } from './config.js'
import { batchFingerprint, digest, identify, shown } from './fingerprint.js'
import { outcomeDigest } from './outcome-digest.js'
import type { CallFact, ChildOutcome, Fact, ResultFact } from './types.js'

/** A call as the guards see it. This is where its arguments are hashed: make it once a call and keep it. */
export function callFact(
  name: string,
  argumentsText: string,
  traits: { polling: boolean; readOnly: boolean },
): CallFact {
  return {
    name,
    ...identify(name, argumentsText),
    shown: shown(argumentsText),
    polling: traits.polling,
    readOnly: traits.readOnly,
  }
}

/** How a call ended. */
export interface Ending {
  ok: boolean
  errorKind: ResultFact['errorKind']
  /** Whether it was never carried out, and who refused it; closed as the run stopped, nobody did. */
  refused: boolean
  refusedBy: ResultFact['refusedBy']
  /** What the model reads. */
  content: string
  durationMs: number
  child?: ChildOutcome
}

/** A result as the guards that are on see it: its content is read for those that compare it, each time once. */
export function resultFact(call: CallFact, ending: Ending, config: GuardrailsConfig): ResultFact {
  const { content, child, ...known } = ending
  const { repeatedCall, repeatedOutput, cycle, progress } = config
  return {
    ...call,
    ...known,
    digest: repeatedCall || repeatedOutput || cycle ? digest(content) : '',
    outcome: progress && !ending.refused ? outcomeDigest(content) : '',
    size: content.length,
    ...(child && { child }),
  }
}

export function callsFact(calls: CallFact[]): Fact {
  return { type: 'calls', batch: batchFingerprint(calls.map((call) => call.fingerprint)), calls }
}

export function resultsFact(results: ResultFact[], at = 0): Fact {
  return {
    type: 'results',
    batch: batchFingerprint(results.map((result) => result.fingerprint)),
    outcome: batchFingerprint(results.map(outcomeOf)),
    results,
    at,
  }
}

function outcomeOf(result: ResultFact): string {
  const ending = result.ok ? 'ok' : (result.errorKind ?? 'refused')
  return `${result.fingerprint} ${ending} ${result.digest}`
}
