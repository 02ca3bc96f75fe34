import { normalizeName } from '../base/nearest.js'

/**
 * What other libraries call a setting, and where it is here. An unknown option of such a name is answered with this hint.
 * `docs/migrating.md` lists the same names; a test compares the two.
 *
 * A hint is the path of a key, or a sentence about what to use instead.
 */
export const otherNames: Readonly<Record<string, string>> = {
  maxTurns: 'limits.maxSteps',
  maxIterations: 'limits.maxSteps',
  max_infer_iters: 'limits.maxSteps',
  recursionLimit: 'limits.maxSteps',
  autonomous_iter_cap: 'limits.maxSteps',
  turns: 'limits.maxSteps',
  stopWhen: 'limits.maxSteps',
  totalTokens: 'limits.tokenBudget',
  maxRetries: 'retry.maxAttempts, which counts the first attempt too',
  system: 'instructions',
  systemPrompt: 'instructions',
  temperature: 'sampling.temperature',
  maxOutputTokens: 'sampling.maxTokens',
  sampling_params: 'sampling',
  modelSettings: 'sampling',
  providerOptions: 'extraBody',
  outputType: 'output',
  responseFormat: 'output',
  contextWindow: 'context.window',
  repeatCallGuard: 'guardrails.repeatedCall, or presets.openhuman for all of its guards',
  inputShields: 'shields.input',
  outputShields: 'shields.output',
  inputGuardrails: 'shields.input',
  outputGuardrails: 'shields.output',
  checkpointer: 'store',
  cancelEvent: 'signal of agent.run(input, { signal })',
  abortSignal: 'signal of agent.run(input, { signal })',
  thread_id: 'session of agent.run(input, { session })',
  pollingTools: 'polling of defineTool({ polling: true })',
  toolgroups: 'tools, which takes groups made with defineToolGroup',
  handoffs: 'tools, which takes agent.asTool({ name, description })',
}

const hints = /* @__PURE__ */ new Map(
  Object.entries(otherNames).map(([name, hint]) => [normalizeName(name), hint]),
)

/** Finds what a setting of another library is called here, in any spelling (`max_turns`, `maxTurns`). */
export function findOtherName(name: string): string | undefined {
  return hints.get(normalizeName(name))
}
