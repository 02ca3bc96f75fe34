import { describeError, UsageError } from '../base/errors.js'
import { explainIssues, parseWithoutProto, validateWith } from '../tools/parse-arguments.js'
import { findJsonProblem } from '../base/json.js'
import { valueOr } from '../base/maybe-promise.js'
import { expectArgument, objectRule } from '../base/values.js'
import type { RunResult } from '../../../machines/agent/run-result.js'
import type { StructuredOutput } from './structured-output.js'

export type Reading = { ok: true; value: unknown } | { ok: false; problem: string }

/** The JSON is the whole text, or the content of its code fence. Never throws or rejects. */
export function readOutput(
  text: string,
  { validate, schema }: Pick<StructuredOutput, 'validate' | 'schema'>,
): Reading | Promise<Reading> {
  if (text.trim() === '') return toProblem('The answer is empty, but must be a JSON object.')
  const json = stripFence(text.trim())
  const value = valueOr(() => parseWithoutProto(json), undefined)
  if (value === undefined) return toProblem(`The answer is not a JSON object: ${describeJsonProblem(json)}.`)
  return validateWith<Reading>(
    { validate },
    value,
    (result) => {
      if (!result.issues) return { ok: true, value: result.value }
      const issues = result.issues.map(({ message, path = [] }) => ({ message, path: ['answer', ...path] }))
      const problems = explainIssues(issues, { properties: { answer: schema } })
      return toProblem(`The answer does not fit the output schema:\n${problems}`)
    },
    (error) =>
      toProblem(`The answer could not be validated against the output schema: ${describeError(error)}`),
  )
}

/** Takes the text from the first to the last fence, because JSON strings may contain fences. */
function stripFence(text: string): string {
  const [open, close] = [text.indexOf(fence), text.lastIndexOf(fence)]
  if (text.startsWith('{') || open === close) return text
  return text.slice(open + fence.length, close).replace(/^json\b/i, '')
}

const fence = '```'

/** Describes only the position of the problem, because no shield has screened the content yet. */
function describeJsonProblem(json: string): string {
  const found = findJsonProblem(json)
  return found === null ? 'it is nested too deeply' : `${found.problem}, at position ${found.position}`
}

const toProblem = (problem: string): Reading => ({ ok: false, problem })

type EndedResult = Extract<RunResult, { resumable: false }>

/**
 * The result of a run with its output as an object. The machine has already validated the output, but a shield may have
 * changed it, and only the schema can create values that JSON cannot represent, such as a Date. Never throws or rejects.
 */
export function addObject(
  output: StructuredOutput | undefined,
  result: RunResult,
): RunResult | Promise<RunResult> {
  return output && hasOutput(result) ? readObject(output, result) : result
}

const hasOutput = (result: RunResult): result is EndedResult =>
  !result.resumable && result.outputProblem === undefined

async function readObject(output: StructuredOutput, result: EndedResult): Promise<RunResult> {
  const read = await readOutput(result.output, output)
  return read.ok ? { ...result, object: read.value } : { ...result, outputProblem: read.problem }
}

/** For code that cannot wait. Undefined without a valid object. @throws {UsageError} `async_schema` */
export function getObject(output: StructuredOutput | undefined, result: RunResult): unknown {
  if (!output || !hasOutput(result)) return undefined
  const read = readOutput(result.output, output)
  if ('ok' in read) return read.ok ? read.value : undefined
  throw new UsageError('async_schema', 'The schema is asynchronous: await withObject().', 'output')
}

const resultRule = /* @__PURE__ */ objectRule(['state'], 'a run result')

/** Checks a result that comes from the app. @throws {UsageError} `invalid_argument` */
export function checkResult(result: RunResult): RunResult {
  expectArgument('result', result, resultRule)
  return result
}
