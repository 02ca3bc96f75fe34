// This module is separate from the tools, which need Node, because the site's playground runs it in a browser.

/** An invalid expression. The message names the position and the expected token. */
export class ArithmeticError extends Error {
  override readonly name = 'ArithmeticError'
}

const maxLength = 1_000
const tokenPattern = /\s*(?:(\d+(?:\.\d+)?|\.\d+)(e[+-]?\d+)?|(\*\*|[-+*/%^(),])|([a-z]+))/iy

const functions: Readonly<Record<string, (...values: number[]) => number>> = {
  abs: Math.abs,
  ceil: Math.ceil,
  floor: Math.floor,
  max: Math.max,
  min: Math.min,
  round: Math.round,
  sqrt: Math.sqrt,
  sum: (...values) => values.reduce((total, value) => total + value, 0),
}

/**
 * Evaluates numbers, `+ - * / %`, `^` or `**` (right-associative), parentheses, and the functions abs, ceil, floor, max, min,
 * round, sqrt, sum. Rounds to 12 significant digits, so that 0.1 + 0.2 is 0.3.
 * @throws {ArithmeticError} for anything else, a division by zero, and results that are not finite
 */
export function evaluateExpression(expression: string): number {
  if (expression.length > maxLength) {
    throw new ArithmeticError(`The expression is longer than ${maxLength} characters. Split it.`)
  }
  const value = parseTokens(tokenize(expression))
  if (!Number.isFinite(value)) throw new ArithmeticError('The result is not a finite number.')
  return Number(value.toPrecision(12))
}

/** `at` is the position in the text. 1 is the first character. */
type Token = { text: string; at: number }

function tokenize(expression: string): Token[] {
  const tokens: Token[] = []
  const text = expression.trimEnd()
  const pattern = new RegExp(tokenPattern)
  while (pattern.lastIndex < text.length) {
    const from = pattern.lastIndex
    const match = pattern.exec(text)
    if (!match) {
      const [found = ''] = text.slice(from).trimStart()
      const at = text.indexOf(found, from) + 1
      throw new ArithmeticError(
        `'${found}' at character ${at} is not arithmetic. Use numbers, + - * / % ^ and ( ).`,
      )
    }
    const found = match[0].trimStart()
    tokens.push({ text: found, at: pattern.lastIndex - found.length + 1 })
  }
  return tokens
}

/** A recursive descent parser. Its depth is limited by the length of the expression. */
function parseTokens(tokens: readonly Token[]): number {
  let next = 0

  function take(...texts: readonly string[]): string | undefined {
    const text = tokens[next]?.text
    if (text === undefined || !texts.includes(text)) return undefined
    next += 1
    return text
  }

  function unexpectedError(expected: string): ArithmeticError {
    const token = tokens[next]
    const found = token ? `'${token.text}' at character ${token.at}` : 'the end of the expression'
    return new ArithmeticError(`Expected ${expected}, found ${found}.`)
  }

  function expectToken(text: string): void {
    if (!take(text)) throw unexpectedError(`'${text}'`)
  }

  function parseSum(): number {
    let value = parseProduct()
    for (let sign = take('+', '-'); sign; sign = take('+', '-'))
      value += sign === '+' ? parseProduct() : -parseProduct()
    return value
  }

  function parseProduct(): number {
    let value = parseSigned()
    for (let sign = take('*', '/', '%'); sign; sign = take('*', '/', '%')) {
      const other = parseSigned()
      if (sign === '*') value *= other
      else if (other === 0) throw new ArithmeticError('Division by zero.')
      else value = sign === '/' ? value / other : value % other
    }
    return value
  }

  function parseSigned(): number {
    const sign = take('-', '+')
    if (sign) return sign === '-' ? -parseSigned() : parseSigned()
    const base = parsePrimary()
    return take('^', '**') ? base ** parseSigned() : base
  }

  function parsePrimary(): number {
    if (take('(')) {
      const value = parseSum()
      expectToken(')')
      return value
    }
    const text = tokens[next]?.text ?? ''
    const name = text.toLowerCase()
    const isNumber = /^[\d.]/.test(text)
    if (!isNumber && !Object.hasOwn(functions, name))
      throw unexpectedError(`a number, '(' or one of ${Object.keys(functions).join(', ')}`)
    next += 1
    if (isNumber) return Number(text)
    expectToken('(')
    const values = [parseSum()]
    while (take(',')) values.push(parseSum())
    expectToken(')')
    return functions[name]?.(...values) ?? Number.NaN
  }

  const value = parseSum()
  if (next < tokens.length) throw unexpectedError('an operator or the end')
  return value
}
