// Compile-time assertions. Nothing in this folder runs: `tsc` is the test.

/** True only for the very same type; `any` equals nothing but itself. */
export type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;

/** Whether a type is `any`. */
export type IsAny<T> = 0 extends 1 & T ? true : false;

/** Fails to compile unless the argument is `true`. */
export declare function holds<T extends true>(): T;

/** Fails to compile unless the value has exactly the type. */
export declare function typeOf<Actual>(value: Actual): {
  is<Expected>(...proof: Equal<Actual, Expected> extends true ? [] : [expected: Expected, got: Actual]): void;
};
