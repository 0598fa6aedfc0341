-- A look-up is planned once for a connection, and not for each call: with plans made for its very
-- values, planning took four fifths of the time of a small one. The settings that `find_2` has
-- leave one way through the tables, whatever the values are.
ALTER FUNCTION find_2(bytea, bytea, bytea, int, float8, float8, float8)
SET plan_cache_mode = force_generic_plan;
