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
  const value = new Parser(tokenize(expression)).parse()
  if (!Number.isFinite(value)) throw new ArithmeticError('The result is not a finite number.')
  return Number(value.toPrecision(12))
}

interface Token {
  text: string
  /** Position in the text. 1 is the first character. */
  at: number
}

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
class Parser {
  readonly #tokens: readonly Token[]
  #next = 0

  constructor(tokens: readonly Token[]) {
    this.#tokens = tokens
  }

  parse(): number {
    const value = this.#parseSum()
    if (this.#peekToken() !== undefined) throw this.#unexpectedError('an operator or the end')
    return value
  }

  #parseSum(): number {
    let value = this.#parseProduct()
    for (;;) {
      if (this.#takeToken('+')) value += this.#parseProduct()
      else if (this.#takeToken('-')) value -= this.#parseProduct()
      else return value
    }
  }

  #parseProduct(): number {
    let value = this.#parseSigned()
    for (;;) {
      if (this.#takeToken('*')) value *= this.#parseSigned()
      else if (this.#takeToken('/')) value /= checkNonZero(this.#parseSigned())
      else if (this.#takeToken('%')) value %= checkNonZero(this.#parseSigned())
      else return value
    }
  }

  #parseSigned(): number {
    if (this.#takeToken('-')) return -this.#parseSigned()
    if (this.#takeToken('+')) return this.#parseSigned()
    return this.#parsePower()
  }

  #parsePower(): number {
    const base = this.#parsePrimary()
    return this.#takeToken('^') || this.#takeToken('**') ? base ** this.#parseSigned() : base
  }

  #parsePrimary(): number {
    if (this.#takeToken('(')) {
      const value = this.#parseSum()
      this.#expectToken(')')
      return value
    }
    const text = this.#peekToken()
    if (text !== undefined && /^[\d.]/.test(text)) {
      this.#next++
      return Number(text)
    }
    if (text !== undefined && Object.hasOwn(functions, text.toLowerCase()))
      return this.#parseCall(text.toLowerCase())
    throw this.#unexpectedError(`a number, '(' or one of ${Object.keys(functions).join(', ')}`)
  }

  #parseCall(name: string): number {
    this.#next++
    this.#expectToken('(')
    const values = [this.#parseSum()]
    while (this.#takeToken(',')) values.push(this.#parseSum())
    this.#expectToken(')')
    return functions[name]?.(...values) ?? Number.NaN
  }

  #peekToken(): string | undefined {
    return this.#tokens[this.#next]?.text
  }

  #takeToken(text: string): boolean {
    if (this.#peekToken() !== text) return false
    this.#next++
    return true
  }

  #expectToken(text: string): void {
    if (!this.#takeToken(text)) throw this.#unexpectedError(`'${text}'`)
  }

  #unexpectedError(expected: string): ArithmeticError {
    const token = this.#tokens[this.#next]
    const found = token ? `'${token.text}' at character ${token.at}` : 'the end of the expression'
    return new ArithmeticError(`Expected ${expected}, found ${found}.`)
  }
}

function checkNonZero(value: number): number {
  if (value === 0) throw new ArithmeticError('Division by zero.')
  return value
}
