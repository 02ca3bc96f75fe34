// Reads one answer of the server from its bytes, without a library. Each mistake occurs in real loops.

async function* linesOf(body, mistake) {
  const decoder = new TextDecoder()
  let rest = ''
  for await (const piece of body) {
    rest +=
      mistake === 'decodesPieces' ? new TextDecoder().decode(piece) : decoder.decode(piece, { stream: true })
    const lines = rest.split(mistake === 'wantsLf' ? '\n' : /\r?\n/)
    rest = lines.pop()
    yield* lines
  }
  if (rest) yield rest
}

/** The data of each event. */
async function* eventsOf(body, mistake) {
  for await (const line of linesOf(body, mistake)) {
    if (mistake === 'parsesComments' && line.startsWith(':')) yield JSON.parse(line)
    if (!line.startsWith(mistake === 'wantsSpace' ? 'data: ' : 'data:')) continue
    const data = mistake === 'wantsLf' ? line.slice(5) : line.slice(5).trim()
    if (mistake === 'wantsLf' && data.endsWith('\r')) throw new Error('a line with CR')
    yield data === '[DONE]' ? data : JSON.parse(data)
  }
}

function addCall(calls, piece, mistake) {
  const { index, id, function: named = {} } = piece
  if (mistake === 'wantsIndex' && index === undefined) return
  const known = calls.find((call) => call.index === index)
  const isNew =
    index === undefined || !known || (id && known.id !== id && named.name && mistake !== 'trustsIndex')
  if (isNew) calls.unshift({ index, id: id ?? '', name: named.name ?? '', input: named.arguments ?? '' })
  else known.input += named.arguments ?? ''
}

function addChunk(answer, data, mistake, onText) {
  if (data.error) {
    if (mistake !== 'acceptsAnything') throw new Error(`the server says: ${data.error.message}`)
    return
  }
  const usage = data.usage && { input: data.usage.prompt_tokens, output: data.usage.completion_tokens }
  if (usage && mistake !== 'readsUsageEarly') answer.usage = usage
  const [choice] = data.choices ?? []
  if (!choice) return
  const { content, reasoning_content: reasoning, tool_calls: calls } = choice.delta ?? {}
  const text =
    (mistake === 'readsNulls' ? String(content) : (content ?? '')) +
    (mistake === 'readsReasoning' ? (reasoning ?? '') : '')
  answer.text += text
  if (text) onText(text)
  for (const piece of calls ?? []) addCall(answer.calls, piece, mistake)
  answer.finish = choice.finish_reason ?? answer.finish
}

/** Fills `answer` incrementally, so that the content before a failure is available. */
export async function readAnswer(response, answer, mistake, onText) {
  if (!response.ok)
    throw Object.assign(new Error(`${response.status} ${await response.text()}`), { response })
  const type = response.headers.get('content-type') ?? ''
  const accepts = mistake === 'acceptsAnything'
  if (!type.includes('event-stream') && !accepts) throw new Error(`an answer of the type ${type}`)
  let isDone = false
  for await (const data of eventsOf(response.body, mistake)) {
    if (data === '[DONE]') isDone = true
    else addChunk(answer, data, mistake, onText)
  }
  answer.calls.reverse()
  if (mistake === 'onlyLastCall') answer.calls.splice(0, answer.calls.length - 1)
  if (mistake === 'dropsLastWord') answer.text = answer.text.replace(/\s\S+$/, '')
  if (mistake === 'wantsDone' && !isDone) throw new Error('no [DONE]')
  if (!answer.finish && !accepts && mistake !== 'acceptsCut') throw new Error('the answer has no end')
}
