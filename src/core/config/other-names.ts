import { normalizeName, findNearestName } from '../base/text.js'
import { optionError } from '../base/errors.js'

/**
 * Names of settings in other libraries, with the matching Statewright setting or advice. Errors for unknown options
 * use them as hints. A test keeps `docs/migrating.md` in sync.
 */
export const otherNames: Readonly<Record<string, string>> = {
  maxTurns: 'limits.maxSteps',
  maxIterations: 'limits.maxSteps',
  max_infer_iters: 'limits.maxSteps',
  recursionLimit: 'limits.maxSteps',
  autonomous_iter_cap: 'limits.maxSteps',
  turns: 'limits.maxSteps',
  TASK_RUN_MAX_ITERATIONS: 'limits.maxSteps',
  totalTokens: 'limits.tokenBudget',
  maxBudgetUsd: 'limits.costLimit',
  maxRetries: 'retry.maxAttempts, which also counts the first attempt',
  maximumAttempts: 'retry.maxAttempts',
  maxRetryAttempts: 'retry.maxAttempts',
  initialInterval: 'retry.baseDelayMs',
  initialRetryInterval: 'retry.baseDelayMs',
  maximumInterval: 'retry.maxDelayMs',
  maxRetryInterval: 'retry.maxDelayMs',
  llm: 'model',
  fallbackModel: 'model: withFallbacks([ … ])',
  fallbackModels: 'model: withFallbacks([ … ])',
  system: 'instructions',
  systemPrompt: 'instructions',
  prompt: 'instructions, or the input of agent.run(input)',
  temperature: 'sampling.temperature',
  topP: 'sampling.topP',
  seed: 'sampling.seed',
  stopSequences: 'sampling.stop',
  maxTokens: 'sampling.maxTokens',
  maxOutputTokens: 'sampling.maxTokens',
  sampling_params: 'sampling',
  modelSettings: 'sampling',
  providerOptions: 'extraBody',
  outputType: 'output',
  responseFormat: 'output',
  contextWindow: 'context.window',
  context_strategy: 'context.strategy',
  repeatCallGuard: 'guardrails.repeatedCall, or presets.openhuman for all of its guards',
  RepeatOutputGuard: 'guardrails.repeatedOutput, or presets.openhuman for all of its guards',
  inputShields: 'shields.input',
  outputShields: 'shields.output',
  inputGuardrails: 'shields.input',
  outputGuardrails: 'shields.output',
  checkpointer: 'store',
  cancelEvent: 'signal in agent.run(input, { signal })',
  abortSignal: 'signal in agent.run(input, { signal })',
  thread_id: 'session in agent.run(input, { session })',
  experimental_context: 'context in agent.run(input, { context })',
  runtimeContext: 'context in agent.run(input, { context })',
  experimental_telemetry: 'telemetry',
  parallelToolCalls: 'toolCalls.concurrency, where 1 runs one call at a time',
  maxConcurrency: 'toolCalls.concurrency',
  inputSchema: 'input in defineTool({ input })',
  pollingTools: 'polling in defineTool({ polling: true })',
  toolgroups: 'tools, which takes groups created with defineToolGroup',
  vector_db_ids: 'memory, or tools with memory({ documents }).tool()',
  toolApproval: 'needsApproval in defineTool({ needsApproval: true })',
  name: 'the key in defineAgents({ name: agent }), or name in agent.asTool({ name, description })',
  mcpServers: 'tools, which takes servers connected with mcpTools({ … })',
  handoffs: 'tools, which takes handoff(agent, { name, description })',
  subagents: 'tools, which takes agent.asTool({ name, description })',
  middleware: 'shields for content, and guards for calls and results',
  MaxTurnsReachedException: 'the state MAX_STEPS, or MaxStepsError from orThrow(result)',
  onStepFinish: 'the events of a run: for await (const event of run)',
}

const hints = /* @__PURE__ */ new Map(
  Object.entries(otherNames).map(([name, hint]) => [normalizeName(name), hint]),
)

/** Finds Statewright's name for a setting of another library, in any spelling (`max_turns`, `maxTurns`). */
export function findOtherName(name: string): string | undefined {
  return hints.get(normalizeName(name))
}

/**
 * Rejects unknown options of a function. The error includes a hint if another library uses the name.
 * @throws {UsageError} `invalid_option`, naming the option
 */
export function expectKnownOptions(name: string, options: object, known: readonly string[]): void {
  const key = Object.keys(options).find((value) => !known.includes(value))
  if (key === undefined) return
  throw optionError(`${name} has no option '${key}'. ${hintFor(key, known)}`, key)
}

export function hintFor(key: string, known: readonly string[]): string {
  const other = findOtherName(key)
  if (other !== undefined) return `Use ${other}.`
  const match = findNearestName(key, known)
  return match === undefined ? `The options are ${known.join(', ')}.` : `Did you mean ${match}?`
}
