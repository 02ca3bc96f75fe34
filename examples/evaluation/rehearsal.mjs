/** Replaces the models with a mistake-prone agent and a judge. */
import { startRehearsal } from 'statewright/rehearsal'

export const orders = {
  1001: { status: 'shipped', arrives: 'Monday', price: '$24' },
  1002: { status: 'packed', arrives: 'Tuesday', price: '$310' },
  1003: { status: 'cancelled', arrives: 'never', price: '$18' },
  1004: { status: 'delivered', arrives: 'last Friday', price: '$72' },
  1005: { status: 'returned', arrives: 'never', price: '$99' },
}

/** The agent's answer about an order. It is too wordy about a parcel in transit, and ignores prices. */
function answer(question, { status, arrives }) {
  if (question.includes('cost')) return 'Unknown.'
  if (question.includes('arrive'))
    return arrives === 'never' ? `It is ${status}.` : `Thank you for asking! It arrives ${arrives}.`
  if (status !== 'packed') return `Thank you for asking! Your order is ${status}.`
  return (
    'Thank you for asking! Your order is packed, and the parcel is going to be handed to the courier very soon, ' +
    'which means that you will have it in your hands in no time at all.'
  )
}

const desk = ({ body }) => {
  const question = body.messages.findLast(({ role }) => role === 'user').content
  const [id] = /\d{4}/.exec(question) ?? []
  if (!body.messages.some(({ role }) => role === 'tool'))
    return { toolCalls: [{ name: 'find_order', arguments: { id } }] }
  return { text: orders[id] ? answer(question, orders[id]) : 'I am sorry, I know no such order.' }
}

const verdict = ({ body }) => {
  const { answer: actual } = JSON.parse(body.messages.findLast(({ role }) => role === 'user').content)
  const score = /thank you|sorry/i.test(actual) ? 1 : 0.25
  return { text: JSON.stringify({ why: score === 1 ? 'It is friendly.' : 'It is curt.', score }) }
}

const always = (turn) => ({ turns: [turn], onExhausted: 'repeatLast' })

export const rehearsal = await startRehearsal({ scenarios: { desk: always(desk), judge: always(verdict) } })
