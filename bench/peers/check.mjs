// Checks the checker. Before any measurement, the server receives wrong work of each kind and must reject it.
import { argumentsOf } from '../scripted.mjs'
import { resultOf } from './tool.mjs'

const user = { role: 'user', content: 'Go.' }
const call = (step, text = argumentsOf(step), id = `call_${step}`) => ({
  role: 'assistant',
  content: null,
  tool_calls: [{ id, type: 'function', function: { name: 'read', arguments: text } }],
})
const result = (step, content = resultOf(step), id = `call_${step}`) => ({
  role: 'tool',
  tool_call_id: id,
  content,
})
const tools = [{ type: 'function', function: { name: 'read', parameters: {} } }]
const step = (n) => [call(n), result(n)]

const right = [
  [user],
  [user, ...step(0)],
  [{ role: 'system', content: 'Be short.' }, user, ...step(0), ...step(1)],
]
const wrong = [
  [[], 'no message'],
  [[{ role: 'user', content: 'Stop.' }], 'another question'],
  [[user, ...step(1)], 'a history without its first step'],
  [[user, ...step(0), ...step(0)], 'a step twice'],
  [[user, result(0)], 'a result without its call'],
  [[user, call(0)], 'a call without its result'],
  [[user, call(0), result(0, 'other')], 'another result'],
  [[user, call(0), result(0, resultOf(0), 'call_1')], 'the result of another call'],
  [[user, call(0, '{"path":"notes/1.txt"}'), result(0)], 'other arguments'],
  [[user, call(0, '{'), result(0)], 'arguments that are no JSON'],
  [[user, ...step(0), ...step(1), ...step(2)], 'more steps than the script has'],
]

/** Throws when the server accepts wrong work or rejects correct work. */
export async function checkTheChecker(url, account) {
  const ask = async (messages, rest) => {
    const body = JSON.stringify({ model: 'steps-3', messages, tools, ...rest })
    const headers = { 'content-type': 'application/json' }
    const { status } = await fetch(`${url}/chat/completions`, { method: 'POST', headers, body })
    const { refused } = await account()
    return status === 400 && refused !== undefined
  }
  for (const messages of right) {
    if (await ask(messages)) throw new Error(`the server refuses right work: ${JSON.stringify(messages)}`)
  }
  for (const [messages, what] of wrong) {
    if (!(await ask(messages))) throw new Error(`the server lets pass: ${what}`)
  }
  if (!(await ask([user], { tools: [] }))) throw new Error('the server lets pass: a request without the tool')
}
