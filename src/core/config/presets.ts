import { noGuards } from '../../../guards/roster.js'
import type { AgentConfigInput, PresetName } from '../../../machines/agent/config.js'
import { ConfigError } from '../base/errors.js'
import { findNearestName } from '../base/text.js'

const openhuman = {
  limits: { maxSteps: 10 },
  guardrails: {
    ...noGuards,
    maxRepeatedToolSteps: 3,
    repeatedCall: { haltAt: 'reached', counts: 'all', onRepeat: 'halt', onHalt: 'pause' },
    repeatedOutput: { rounds: 4, strict: true, onHalt: 'pause' },
    failing: {
      identical: 3,
      any: 6,
      transientIdentical: 8,
      transientAny: 12,
      policyDenied: 2,
      onRepeat: 'halt',
      onHalt: 'pause',
    },
    terminalDelegation: { onHalt: 'pause' },
  },
} as const satisfies AgentConfigInput

/**
 * The loops that Statewright learned from, each as a plain configuration to spread into `createAgent`. Where a source
 * contradicts itself, the preset does what its document promises; docs/presets.md says what was chosen.
 *
 * @example createAgent({ ...presets.openhuman, model, tools })
 */
export const presets = /* @__PURE__ */ rejectUnknownNames({
  /**
   * The 4th identical batch is not executed, whatever its results; budgets trip right after the response. An empty
   * answer ends the turn.
   */
  aar: {
    limits: { maxSteps: 50, timeoutMs: 0 },
    budget: { scope: 'session', onOvershoot: 'exceeded', finishBatch: false },
    completion: { onMissingEnd: 'accept' },
    guardrails: {
      ...noGuards,
      maxTokensRecoveries: 2,
      emptyAnswer: null,
      maxRepeatedToolSteps: 3,
      reserveTokens: 512,
      reserveCostFraction: 0.1,
      repeatedCall: { haltAt: 'next', counts: 'all', valueChars: 200, onRepeat: 'halt', onHalt: 'error' },
    },
  },

  /**
   * Halts right after the 3rd identical successful batch, whatever its results, and after the 4th identical output, as a
   * resumable checkpoint with the model's last words.
   */
  openhuman,

  /** The same guards for dispatched tasks and skills, with the lifted cap as an explicit number. */
  openhumanTask: { ...openhuman, limits: { maxSteps: 200 } },

  /**
   * `max_infer_iters`: exactly N inferences a turn, 10 unless you say otherwise; the calls of the last one still run. A
   * truncated answer is the answer, and there is no guard of its own. Shields are no plain data: give them beside the
   * preset, as `shields: { input, output }`. A violation ends the turn with its message (`BLOCKED`).
   */
  llamaStack: {
    limits: { maxSteps: 10 },
    guardrails: { ...noGuards, maxTokensRecoveries: 0, emptyAnswer: null },
  },

  /** Limits of one invocation: turns, tokens, output tokens; the batch in flight completes, a natural end wins. */
  strands: {
    limits: { maxSteps: null },
    budget: { scope: 'run', onOvershoot: 'complete', finishBatch: true },
    guardrails: { ...noGuards, emptyAnswer: null },
  },
} as const satisfies Record<PresetName, AgentConfigInput>)

/** The preset of this name. Throws a ConfigError about `subject` when there is none. */
export function findPreset(name: string, subject: string): AgentConfigInput {
  if (Object.hasOwn(presets, name)) return presets[name as PresetName]
  throw unknownPresetError(name, Object.keys(presets), subject)
}

function unknownPresetError(name: string, names: readonly string[], subject: string): ConfigError {
  const meant = findNearestName(name, names)
  const hint = meant === undefined ? `There are ${names.join(', ')}.` : `Did you mean '${meant}'?`
  return new ConfigError('invalid_config', `There is no preset '${name.slice(0, 64)}'. ${hint}`, subject)
}

/** To spread what is not there is no mistake to JavaScript: a mistyped name would give the defaults in silence. */
function rejectUnknownNames<Presets extends Record<string, AgentConfigInput>>(all: Presets): Presets {
  return new Proxy(all, {
    get(_, name) {
      // Inspectors and matchers ask for other things, whose names begin otherwise or are methods of every object.
      if (
        typeof name === 'string' &&
        /^[a-z]\w*$/i.test(name) &&
        !(name in all) &&
        !commonPropertyNames.has(name)
      ) {
        throw unknownPresetError(name, Object.keys(all), `presets.${name}`)
      }
      return Reflect.get(all, name) as unknown
    },
  })
}

/** Properties that `await`, JSON and matchers read of any object. */
const commonPropertyNames: ReadonlySet<string> = new Set([
  'then',
  'toJSON',
  'asymmetricMatch',
  'nodeType',
  'tagName',
])
