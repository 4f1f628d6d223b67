/** The one door: what rules judge of a shell line. */
export { type LinePlace, type ReadLine, readLine } from './read-line.ts'
