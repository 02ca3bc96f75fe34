import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** Recorded traffic of real providers. It is not part of the project. Tests skip when it is missing. */
export const recordings = join(import.meta.dirname, '../../../../shared/recordings')
export const hasRecordings = existsSync(join(recordings, 'INDEX.jsonl'))

export interface Recording {
  name: string
  /** The server's vendor, if known. */
  host: string
  status: number
  headers: Record<string, string>
  body: string
  expected: Expected
}

/** The result of a correct client. A missing field is unknown. */
export interface Expected {
  text?: string
  textHead?: string
  textLength?: number
  reasoning?: string | null
  reasoningLength?: number
  toolCalls?: [id: string, name: string, args: string][]
  finishReason?: string | null
  complete?: boolean
  usage?: { input: number; output: number } | null
  error?: unknown
}

interface IndexLine {
  file: string
  n: number
  api: string
  host: string | null
  status: number
  finish: string | null
  textHead: string
  textLen: number
  reasoningLen: number
  toolCalls: [string, string, string][]
  usage: [number, number] | null
  error: unknown
}

interface Tape {
  interactions: {
    response: { status: number; headers: Record<string, string>; body: string }
    expected: {
      text?: string
      reasoning?: string | null
      done?: boolean
      finishReason?: string | null
      toolCalls?: { id: string; name: string; arguments: string }[]
    }
  }[]
}

/** Every indexed answer of this API. */
export function recordedAnswers(wanted: 'chat' | 'responses' = 'chat'): Recording[] {
  return read('INDEX.jsonl')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as IndexLine)
    .filter(({ api }) => api === wanted)
    .map(recordingOf)
}

function recordingOf(line: IndexLine): Recording {
  const expected: Expected = {
    textHead: line.textHead,
    textLength: line.textLen,
    reasoningLength: line.reasoningLen,
    toolCalls: line.toolCalls,
    finishReason: line.finish,
    usage: line.usage && { input: line.usage[0], output: line.usage[1] + thoughtsApart(line.file) },
    error: line.error,
  }
  const name = `${line.file} #${line.n}`
  const host =
    line.host ??
    line.file
      .split('/')
      .slice(0, 2)
      .join('/')
      .replace(/\/[^/]*\.txt$/, '')
  if (!line.file.endsWith('.json')) {
    const body = line.file.endsWith('.chunks.txt') ? asEvents(read(line.file)) : read(line.file)
    return {
      name,
      host,
      status: line.status,
      headers: { 'content-type': 'text/event-stream' },
      body,
      expected,
    }
  }
  const tape = JSON.parse(read(line.file)) as Tape
  const interaction = tape.interactions[line.n]
  if (interaction === undefined) throw new Error(`${name} is not on its tape`)
  const { response, expected: known } = interaction
  if (known.text !== undefined) expected.text = known.text
  if (known.reasoning !== undefined) expected.reasoning = known.reasoning
  if (known.done !== undefined) expected.complete = known.done || Boolean(known.finishReason)
  // The index cuts long arguments.
  if (known.toolCalls !== undefined)
    expected.toolCalls = known.toolCalls.map((call) => [call.id, call.name, call.arguments])
  return { name, host, status: response.status, headers: response.headers, body: response.body, expected }
}

/**
 * xAI bills 227 reasoning tokens here that it does not count as completion. Its total (560) includes them.
 */
function thoughtsApart(file: string): number {
  return file.endsWith('xai-tool-call.chunks.txt') ? 227 : 0
}

/** One JSON chunk per line, as sent on the wire. */
function asEvents(chunks: string): string {
  return chunks
    .split('\n')
    .filter((line) => line.trim() !== '')
    .map((line) => `data: ${line}\n\n`)
    .join('')
}

interface Reconstruction {
  expected: {
    text?: string
    toolCalls?: [string, string, string][]
    finish?: string
    complete?: boolean
    error?: unknown
  }
}

/** Shapes rebuilt from public bug reports. */
export function reconstructedAnswers(): Recording[] {
  const shapes = JSON.parse(read('reconstructed/EXPECTED.json')) as Record<string, Reconstruction>
  return Object.entries(shapes).map(([name, { expected }]) => ({
    name: `reconstructed/${name}`,
    host: 'reconstructed',
    status: 200,
    headers: { 'content-type': 'text/event-stream' },
    body: read(`reconstructed/${name}.sse.txt`),
    expected: { ...expected, ...(expected.finish !== undefined && { finishReason: expected.finish }) },
  }))
}

function read(file: string): string {
  return readFileSync(join(recordings, file), 'utf8')
}
