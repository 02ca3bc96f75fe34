/** An expression that cannot be evaluated; the message names the place and what was expected there. */
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
 * The value of an arithmetic expression: numbers, `+ - * / %`, `^` or `**` (binds to the right), parentheses, and the
 * functions abs, ceil, floor, max, min, round, sqrt, sum. Rounded to 12 significant digits, so that 0.1 + 0.2 is 0.3.
 *
 * Throws an ArithmeticError for everything else, a division by zero and results that are no finite number included.
 */
export function evaluate(expression: string): number {
  if (expression.length > maxLength) {
    throw new ArithmeticError(`The expression is longer than ${maxLength} characters. Split it.`)
  }
  const value = new Parser(tokenize(expression)).parse()
  if (!Number.isFinite(value)) throw new ArithmeticError('The result is not a finite number.')
  return Number(value.toPrecision(12))
}

interface Token {
  text: string
  /** 1 is the first character. */
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

/** Recursive descent; the length of an expression bounds its depth. */
class Parser {
  readonly #tokens: readonly Token[]
  #next = 0

  constructor(tokens: readonly Token[]) {
    this.#tokens = tokens
  }

  parse(): number {
    const value = this.#sum()
    if (this.#peek() !== undefined) throw this.#unexpected('an operator or the end')
    return value
  }

  #sum(): number {
    let value = this.#product()
    for (;;) {
      if (this.#take('+')) value += this.#product()
      else if (this.#take('-')) value -= this.#product()
      else return value
    }
  }

  #product(): number {
    let value = this.#signed()
    for (;;) {
      if (this.#take('*')) value *= this.#signed()
      else if (this.#take('/')) value /= nonZero(this.#signed())
      else if (this.#take('%')) value %= nonZero(this.#signed())
      else return value
    }
  }

  #signed(): number {
    if (this.#take('-')) return -this.#signed()
    if (this.#take('+')) return this.#signed()
    return this.#power()
  }

  #power(): number {
    const base = this.#primary()
    return this.#take('^') || this.#take('**') ? base ** this.#signed() : base
  }

  #primary(): number {
    if (this.#take('(')) {
      const value = this.#sum()
      this.#expect(')')
      return value
    }
    const text = this.#peek()
    if (text !== undefined && /^[\d.]/.test(text)) {
      this.#next++
      return Number(text)
    }
    if (text !== undefined && Object.hasOwn(functions, text.toLowerCase()))
      return this.#call(text.toLowerCase())
    throw this.#unexpected(`a number, '(' or one of ${Object.keys(functions).join(', ')}`)
  }

  #call(name: string): number {
    this.#next++
    this.#expect('(')
    const values = [this.#sum()]
    while (this.#take(',')) values.push(this.#sum())
    this.#expect(')')
    return functions[name]?.(...values) ?? Number.NaN
  }

  #peek(): string | undefined {
    return this.#tokens[this.#next]?.text
  }

  #take(text: string): boolean {
    if (this.#peek() !== text) return false
    this.#next++
    return true
  }

  #expect(text: string): void {
    if (!this.#take(text)) throw this.#unexpected(`'${text}'`)
  }

  #unexpected(expected: string): ArithmeticError {
    const token = this.#tokens[this.#next]
    const found = token ? `'${token.text}' at character ${token.at}` : 'the end of the expression'
    return new ArithmeticError(`Expected ${expected}, found ${found}.`)
  }
}

function nonZero(value: number): number {
  if (value === 0) throw new ArithmeticError('Division by zero.')
  return value
}
