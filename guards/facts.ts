import { batchFingerprint, fingerprint, shown } from './fingerprint.js'
import type { CallFact, Fact, ResultFact } from './types.js'

/** A call as the guards see it. This is where its arguments are hashed: make it once a call and keep it. */
export function callFact(
  name: string,
  argumentsText: string,
  traits: { polling: boolean; readOnly: boolean },
): CallFact {
  return {
    name,
    fingerprint: fingerprint(name, argumentsText),
    shown: shown(argumentsText),
    polling: traits.polling,
    readOnly: traits.readOnly,
  }
}

export function callsFact(calls: CallFact[]): Fact {
  return { type: 'calls', batch: batchFingerprint(calls.map((call) => call.fingerprint)), calls }
}

export function resultsFact(results: ResultFact[]): Fact {
  return {
    type: 'results',
    batch: batchFingerprint(results.map((result) => result.fingerprint)),
    outcome: batchFingerprint(results.map(outcomeOf)),
    results,
  }
}

function outcomeOf(result: ResultFact): string {
  const ending = result.ok ? 'ok' : (result.errorKind ?? 'refused')
  return `${result.fingerprint} ${ending} ${result.digest}`
}
