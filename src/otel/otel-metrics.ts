import {
  type Attributes,
  type Counter,
  createNoopMeter,
  type Histogram,
  type Meter,
  type MeterProvider,
  metrics,
} from '@opentelemetry/api'
import type { Usage } from '../../machines/agent/usage.js'
import type { SharedBudget } from '../core/budgets/shared-budget.js'

const createSecondBoundaries = (from: number): number[] => Array.from({ length: 14 }, (_, i) => from * 2 ** i)
const createAdvice = (boundaries: number[]) => ({ advice: { explicitBucketBoundaries: boundaries } })
const tokenBoundaries = Array.from({ length: 14 }, (_, i) => 4 ** i)
const callBoundaries = [1, 2, 4, 8, 16, 32, 64, 128]

/** Records metrics with the low-cardinality attributes of the span. */
export class Metrics {
  readonly #requestDuration: Histogram
  readonly #firstChunk: Histogram
  readonly #wait: Histogram
  readonly #tokens: Record<keyof NonNullable<SemconvNames['tokens']>, Counter> | null
  readonly #tokenUsage: Histogram | null
  readonly #agent: {
    duration: Histogram
    requests: Histogram
    calls: Histogram
    recordToolCall: Histogram
  } | null
  readonly #runs: Counter
  readonly #guardrails: Counter
  readonly #cost: Counter
  readonly #approvals: Counter
  readonly #approvalWait: Histogram
  readonly #policyDecisions: Counter

  constructor(provider: MeterProvider, names: SemconvNames, budgets: readonly ObservedBudget[]) {
    const meter = provider.getMeter('statewright')
    const inSeconds = { unit: 's', ...createAdvice(createSecondBoundaries(0.01)) }
    this.#requestDuration = meter.createHistogram(names.requestDuration, {
      ...inSeconds,
      description: 'Duration of model requests, per attempt.',
    })
    this.#firstChunk = meter.createHistogram(names.timeToFirstChunk, {
      ...inSeconds,
      description: 'Time to the first chunk of a streamed answer.',
    })
    this.#wait = meter.createHistogram('statewright.limiter.wait.duration', {
      ...inSeconds,
      description: 'Time that model requests waited for a limiter, by limiter.',
    })
    const { tokens } = names
    const counter = (name: string, description: string): Counter =>
      meter.createCounter(name, { unit: '{token}', description })
    this.#tokens = tokens && {
      input: counter(tokens.input, 'All input, cached or not.'),
      output: counter(tokens.output, 'All output, including reasoning.'),
      cacheRead: counter(tokens.cacheRead, 'Input read from a cache.'),
      cacheWrite: counter(tokens.cacheWrite, 'Input written to a cache.'),
      reasoning: counter(tokens.reasoning, 'Reasoning output.'),
    }
    this.#tokenUsage =
      names.tokenUsage === null
        ? null
        : meter.createHistogram(names.tokenUsage, {
            unit: '{token}',
            description: 'Tokens used by model requests.',
            ...createAdvice(tokenBoundaries),
          })
    this.#agent = names.hasAgentMetrics
      ? {
          duration: meter.createHistogram('gen_ai.invoke_agent.duration', {
            unit: 's',
            description: 'Duration of run segments, from the start or an answer until the run rests.',
            ...createAdvice(createSecondBoundaries(0.1)),
          }),
          requests: meter.createHistogram('gen_ai.invoke_agent.inference_calls', {
            unit: '{inference_call}',
            description: 'Model requests per run segment, including failed ones.',
            ...createAdvice(callBoundaries),
          }),
          calls: meter.createHistogram('gen_ai.invoke_agent.tool_calls', {
            unit: '{tool_call}',
            description: 'Tool calls per run segment.',
            ...createAdvice(callBoundaries),
          }),
          recordToolCall: meter.createHistogram('gen_ai.execute_tool.duration', {
            ...inSeconds,
            description: 'Duration of tool calls.',
          }),
        }
      : null
    this.#runs = meter.createCounter('statewright.runs', {
      unit: '{run}',
      description: 'Runs that have ended, by state and reason.',
    })
    this.#guardrails = meter.createCounter('statewright.guardrail.actions', {
      unit: '{action}',
      description: 'Guard actions, by guard and action.',
    })
    this.#cost = meter.createCounter('statewright.cost', {
      unit: 'USD',
      description: 'Cost of model requests whose price is known.',
    })
    this.#approvals = meter.createCounter('statewright.approvals', {
      unit: '{approval}',
      description: 'Resolved questions about calls, by outcome.',
    })
    this.#approvalWait = meter.createHistogram('statewright.approval.wait.duration', {
      unit: 's',
      description: 'Time that calls waited for approval, by outcome.',
      ...createAdvice(createSecondBoundaries(4)),
    })
    this.#policyDecisions = meter.createCounter('statewright.policy.decisions', {
      unit: '{decision}',
      description: 'Policy decisions, by policy, decision and shadow.',
    })
    if (budgets.length > 0) observeBudgets(meter, budgets)
  }

  recordRequest(durationS: number, firstChunkS: number | null, attributes: Attributes): void {
    this.#requestDuration.record(durationS, attributes)
    if (firstChunkS !== null) this.#firstChunk.record(firstChunkS, attributes)
  }

  recordWait(durationS: number, attributes: Attributes): void {
    this.#wait.record(durationS, attributes)
  }

  recordUsage(usage: Usage, attributes: Attributes): void {
    const { inputTokens, outputTokens, cost, cacheWriteTokens = 0 } = usage
    if (cost !== null && cost > 0) this.#cost.add(cost, attributes)
    if (this.#tokenUsage) {
      this.#tokenUsage.record(inputTokens, { ...attributes, 'gen_ai.token.type': 'input' })
      this.#tokenUsage.record(outputTokens, { ...attributes, 'gen_ai.token.type': 'output' })
    }
    if (!this.#tokens) return
    const ofText = { ...attributes, 'gen_ai.token.modality': 'text' }
    this.#tokens.input.add(inputTokens, ofText)
    this.#tokens.output.add(outputTokens, ofText)
    if (usage.cachedInputTokens > 0) this.#tokens.cacheRead.add(usage.cachedInputTokens, ofText)
    if (cacheWriteTokens > 0) this.#tokens.cacheWrite.add(cacheWriteTokens, ofText)
    if (usage.reasoningTokens > 0) this.#tokens.reasoning.add(usage.reasoningTokens, ofText)
  }

  recordStretch(durationS: number, requests: number, calls: number, attributes: Attributes): void {
    this.#agent?.duration.record(durationS, attributes)
    this.#agent?.requests.record(requests, attributes)
    this.#agent?.calls.record(calls, attributes)
  }

  tool(durationS: number, attributes: Attributes): void {
    this.#agent?.recordToolCall.record(durationS, attributes)
  }

  countRun(state: string, reason: string): void {
    this.#runs.add(1, { state, reason })
  }

  countApproval(outcome: string, waitedS: number): void {
    this.#approvals.add(1, { outcome })
    this.#approvalWait.record(waitedS, { outcome })
  }

  countPolicyDecision(policy: string, decision: string, shadow: boolean): void {
    this.#policyDecisions.add(1, { policy, decision, shadow })
  }

  countGuardrail(guard: string, action: string): void {
    this.#guardrails.add(1, { guard, action })
  }
}

/** A shared budget whose amounts are gauges. */
export type ObservedBudget = Pick<SharedBudget, 'id' | 'status'>

/** Each export reads the budgets. A budget whose store is unavailable has no points. */
function observeBudgets(meter: Meter, budgets: readonly ObservedBudget[]): void {
  const createGauge = (what: string, description: string) =>
    meter.createObservableGauge(`statewright.shared_budget.${what}`, { description })
  const spentGauge = createGauge('spent', 'Amount spent in this window.')
  const reservedGauge = createGauge('reserved', 'Amount reserved for requests in progress.')
  const limitGauge = createGauge('limit', 'Budget limit per window.')
  const gauges = [spentGauge, reservedGauge, limitGauge]
  meter.addBatchObservableCallback(async (result) => {
    const observe = async (budget: ObservedBudget): Promise<void> => {
      const { limits, spent, reserved } = await budget.status()
      for (const unit of ['usd', 'tokens'] as const) {
        const limit = limits[unit]
        if (limit === undefined) continue
        const attributes = { budget: budget.id, unit }
        result.observe(spentGauge, spent[unit], attributes)
        result.observe(reservedGauge, reserved[unit], attributes)
        result.observe(limitGauge, limit, attributes)
      }
    }
    await Promise.allSettled(budgets.map(observe))
  }, gauges)
}

/**
 * Returns a lookup that creates the metrics again when another provider is registered. Unlike tracers, meters do not
 * switch to the new provider.
 */
export function createMetricsLookup(
  meterProvider: MeterProvider | undefined,
  names: SemconvNames,
  budgets: readonly ObservedBudget[],
): () => Metrics | null {
  let known: { provider: MeterProvider; metrics: Metrics | null } | undefined
  return () => {
    const provider = meterProvider ?? metrics.getMeterProvider()
    if (known?.provider !== provider)
      known = { provider, metrics: isNoopProvider(provider) ? null : new Metrics(provider, names, budgets) }
    return known.metrics
  }
}

/** Whether no metrics SDK is registered. */
function isNoopProvider(provider: MeterProvider): boolean {
  return provider.getMeter('statewright').constructor === createNoopMeter().constructor
}

/**
 * The names that differ between versions of the GenAI conventions. The conventions are still in development, and no
 * package contains the latest version. Names that both versions share are inlined.
 */
export interface SemconvNames {
  cacheWrite: string
  requestDuration: string
  timeToFirstChunk: string
  /** Token counters by kind. If null, one histogram counts all tokens (see `tokenUsage`). */
  tokens: Readonly<Record<'input' | 'output' | 'cacheRead' | 'cacheWrite' | 'reasoning', string>> | null
  /** A histogram of tokens, by `gen_ai.token.type`. */
  tokenUsage: string | null
  /** Whether there are histograms for agents and tools. */
  hasAgentMetrics: boolean
}

/**
 * The version of the GenAI conventions. `latest` is the version in the repository semantic-conventions-genai. `v1.41`
 * is the last version that was published with the other conventions, and many backends support it.
 */
export type Semconv = 'latest' | 'v1.41'

const usage = 'gen_ai.client.inference.usage'

export const namesBySemconv: Readonly<Record<Semconv, SemconvNames>> = {
  latest: {
    cacheWrite: 'gen_ai.usage.cache_write.input_tokens',
    requestDuration: 'gen_ai.client.inference.duration',
    timeToFirstChunk: 'gen_ai.client.inference.time_to_first_chunk',
    tokens: {
      input: `${usage}.input_tokens`,
      output: `${usage}.output_tokens`,
      cacheRead: `${usage}.cache_read.input_tokens`,
      cacheWrite: `${usage}.cache_write.input_tokens`,
      reasoning: `${usage}.reasoning.output_tokens`,
    },
    tokenUsage: null,
    hasAgentMetrics: true,
  },
  'v1.41': {
    cacheWrite: 'gen_ai.usage.cache_creation.input_tokens',
    requestDuration: 'gen_ai.client.operation.duration',
    timeToFirstChunk: 'gen_ai.client.operation.time_to_first_chunk',
    tokens: null,
    tokenUsage: 'gen_ai.client.token.usage',
    hasAgentMetrics: false,
  },
}

/** Provider names that differ between the conventions and the price table. */
const providers: Readonly<Record<string, string>> = {
  azure: 'azure.ai.openai',
  bedrock: 'aws.bedrock',
  'amazon-bedrock': 'aws.bedrock',
  google: 'gcp.gemini',
  'google-vertex': 'gcp.vertex_ai',
  vertex: 'gcp.vertex_ai',
  mistral: 'mistral_ai',
  moonshotai: 'moonshot_ai',
  'x-ai': 'x_ai',
  xai: 'x_ai',
}

export function getSemconvProvider(provider: string): string {
  return providers[provider] ?? provider
}
