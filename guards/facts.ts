import type { GuardrailsConfig } from './roster.js'
import { cutValues, digest, fingerprintBatch, formatArguments, identifyCall } from './lib/fingerprint.js'
import { readAnswer } from './lib/answers.js'
import { type OutcomeDigests, digestOutcome } from './lib/outcome-digest.js'
import type { CallFact, Fact, ResultFact } from './types.js'

/** Converts a call to the form that guards read. Create it once per call, because it hashes the arguments. */
export function createCallFact(
  name: string,
  argumentsText: string,
  traits: { polling: boolean; readOnly: boolean },
  { repeatedCall }: Pick<GuardrailsConfig, 'repeatedCall'>,
): CallFact {
  const { fingerprint, key } = identifyCall(name, argumentsText)
  const { polling, readOnly } = traits
  const fact = { name, fingerprint, key, shown: formatArguments(argumentsText), polling, readOnly }
  const most = repeatedCall?.valueChars
  if (most != null) fact.fingerprint = identifyCall(name, cutValues(argumentsText, most)).fingerprint
  return fact
}

export interface CallEnding
  extends Pick<ResultFact, 'ok' | 'errorKind' | 'refused' | 'refusedBy' | 'durationMs' | 'child'> {
  content: string
}

/** The content of a result is hashed only if an enabled guard compares it. */
export function createResultFact(call: CallFact, ending: CallEnding, config: GuardrailsConfig): ResultFact {
  const { content, child } = ending
  const { repeatedOutput, progress } = config
  const isCompared = progress !== null && !ending.refused
  const { digest: outcome, shape } = isCompared ? digestOutcome(content) : notCompared
  // Assigns keys one by one, because spreading two objects costs more than comparing results.
  const fact: ResultFact = {
    name: call.name,
    fingerprint: call.fingerprint,
    key: call.key,
    shown: call.shown,
    polling: call.polling,
    readOnly: call.readOnly,
    ok: ending.ok,
    errorKind: ending.errorKind,
    refused: ending.refused,
    refusedBy: ending.refusedBy,
    digest: needsBatchFingerprint(config) || repeatedOutput ? digest(content) : '',
    outcome,
    shape,
    says: isCompared ? readAnswer(call, ending) : null,
    size: content.length,
    durationMs: ending.durationMs,
  }
  if (child) fact.child = child
  return fact
}

const notCompared: OutcomeDigests = { digest: '', shape: '' }

export function createCallsFact(calls: CallFact[], config: GuardrailsConfig): Fact {
  return { type: 'calls', batch: fingerprintFactBatch(calls, config), calls }
}

export function createResultsFact(results: ResultFact[], config: GuardrailsConfig, at = 0): Fact {
  const outcome = needsBatchFingerprint(config) ? fingerprintBatch(results.map(formatOutcome)) : ''
  return { type: 'results', batch: fingerprintFactBatch(results, config), outcome, results, at }
}

function fingerprintFactBatch(calls: readonly CallFact[], config: GuardrailsConfig): string {
  return needsBatchFingerprint(config) ? fingerprintBatch(calls.map(({ fingerprint }) => fingerprint)) : ''
}

function needsBatchFingerprint({ repeatedCall, cycle }: GuardrailsConfig): boolean {
  return (repeatedCall ?? cycle) != null
}

function formatOutcome(result: ResultFact): string {
  const ending = result.ok ? 'ok' : (result.errorKind ?? 'refused')
  return `${result.fingerprint} ${ending} ${result.digest}`
}
