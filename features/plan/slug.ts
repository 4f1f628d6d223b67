/** Names of plans: three words that people can say. */
import { randomInt } from 'node:crypto'

const words = [
  'amber ancient autumn bold brave bright calm clear crisp curious deep eager early easy fair fine firm free fresh gentle',
  'birch cedar cliff cloud copper coral creek dune fern field forest glass harbor hazel island ivory lake maple marble meadow',
  'badger beaver crane dolphin eagle falcon finch fox hare heron lark lynx marten otter owl puffin raven robin seal wren'
].map(list => list.split(' '))

export function newSlug(): string {
  return words.map(list => list[randomInt(list.length)]).join('-')
}
