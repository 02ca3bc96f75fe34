import type { ToolTraits } from '../../../machines/agent/batch-calls.js'
import { parseArguments } from '../../core/tools/parse-arguments.js'
import { needsPerson } from '../../core/tools/prepare-calls.js'
import { ToolError } from '../../core/tools/tool-error.js'
import { ToolContent } from '../../core/tools/tool-content.js'
import type { Tool, ToolExecution } from '../../core/tools/tool.js'
import { WrappedTools } from '../rebind-agent.js'
import { toCanonicalJson } from '../play/record-session.js'
import type { RecordedResult } from './evaluation-case.js'
import type { EvaluatedRun } from './evaluation-report.js'

export interface PlayedSession {
  /** Aborts at a call that cannot be played. */
  readonly signal: AbortSignal
  readonly diverged: EvaluatedRun['diverged'] | undefined
}

/**
 * The tools of an agent that replays recorded sessions. A call recorded with the same arguments returns the
 * recorded result. Other calls run only if their tool is read-only; any other call ends the session. No person,
 * client or sub-agent is involved.
 */
export class PlayedTools extends WrappedTools {
  readonly #sessions = new Map<string, SessionCalls>()

  begin(session: string, calls: readonly RecordedResult[]): PlayedSession {
    const begun = new SessionCalls(calls)
    this.#sessions.set(session, begun)
    return begun
  }

  end(session: string): void {
    this.#sessions.delete(session)
  }

  protected override trim(traits: ToolTraits): ToolTraits {
    const { readOnly, idempotent, polling, endsRun, deferred, loads, handoff } = super.trim(traits)
    return {
      readOnly,
      idempotent,
      polling,
      ...(endsRun && { endsRun }),
      ...(deferred && { deferred }),
      ...(loads && { loads }),
      ...(handoff && { handoff }),
    }
  }

  protected override wrap(tool: Tool): Tool {
    return {
      ...tool,
      client: false,
      needsApproval: false,
      execute: async (input: unknown, execution: ToolExecution) => {
        const session = this.#sessions.get(execution.sessionId)
        const recorded = await session?.take(tool, input)
        if (recorded) return giveResult(recorded.result)
        const why = await findObstacle(tool, input, execution)
        if (why === null) return tool.execute?.(input, execution)
        session?.diverge(tool.name, input, why)
        throw new ToolError('failed', `This call cannot be played: ${why}.`)
      },
    }
  }
}

/** The recorded calls of one session. Repeated calls return their results in order, then the last one again. */
class SessionCalls implements PlayedSession {
  diverged: EvaluatedRun['diverged']
  readonly #abort = new AbortController()
  readonly #calls: readonly RecordedResult[]
  /** By tool name, then by parsed arguments. */
  readonly #tools = new Map<string, Promise<Map<string, RecordedResult[]>>>()

  constructor(calls: readonly RecordedResult[]) {
    this.#calls = calls
  }

  get signal(): AbortSignal {
    return this.#abort.signal
  }

  async take(tool: Tool, input: unknown): Promise<RecordedResult | undefined> {
    const results = (await this.#readCalls(tool)).get(toCanonicalJson(input))
    return results !== undefined && results.length > 1 ? results.shift() : results?.[0]
  }

  diverge(tool: string, input: unknown, why: string): void {
    this.diverged ??= { tool, arguments: (toCanonicalJson(input) ?? '').slice(0, 2000), why }
    this.#abort.abort(new Error(`Diverged: ${why}.`))
  }

  #readCalls(tool: Tool): Promise<Map<string, RecordedResult[]>> {
    const known = this.#tools.get(tool.name)
    if (known) return known
    const reading = readCalls(
      tool,
      this.#calls.filter(({ name }) => name === tool.name),
    )
    this.#tools.set(tool.name, reading)
    return reading
  }
}

/** Parses recorded arguments with the current schema; calls that no longer fit are dropped. */
async function readCalls(
  tool: Tool,
  calls: readonly RecordedResult[],
): Promise<Map<string, RecordedResult[]>> {
  const byInput = new Map<string, RecordedResult[]>()
  for (const call of calls) {
    // oxlint-disable-next-line no-await-in-loop -- most tools read them at once
    const parsed = await parseArguments(tool, call.arguments)
    if (!parsed.ok) continue
    const key = toCanonicalJson(parsed.input)
    byInput.set(key, [...(byInput.get(key) ?? []), call])
  }
  return byInput
}

/** Why an unrecorded call must not run, or null. */
async function findObstacle(tool: Tool, input: unknown, { context }: ToolExecution): Promise<string | null> {
  const what = 'the session has no such call'
  if (tool.delegate) return `${what}, and sub-agents do not run in a replay`
  if (tool.client) return `${what}, and no client can execute it`
  if (!tool.readOnly) return `${what}, and its tool is not readOnly`
  if (await needsPerson(tool, input, context)) return `${what}, and a person would have to approve it`
  return null
}

const prefixPattern = /^The tool '[\w-]+' (failed|failed, possibly temporarily|refused this call by policy): /

function giveResult({ status, content, media, errorKind }: RecordedResult['result']): unknown {
  if (status === 'ok') return media && media.length > 0 ? new ToolContent(content, media, true) : content
  // The run adds the tool name again.
  throw new ToolError(errorKind ?? 'failed', content.replace(prefixPattern, ''))
}
